"""
A dream from its claim to its last word.

Everything that is not a success leaves by the same door as a death does: `applying.settle` finds the claim, puts the
time of the last dream back and clears away the copy. Only a result that is in place ends the claim before that.
"""

from __future__ import annotations

import os
import re
import time

from taskyard import config, engines
from taskyard.disk import files
from taskyard.dreaming import applying, changes, lock, prompts, sources, standing, trees
from taskyard.dreaming.side import Side
from taskyard.dreaming.sources.source import Project
from taskyard.dreaming.watching import MOST_NAMED, STARTING, DreamWatch, note
from taskyard.engines.engine import Brief, Said
from taskyard.engines.provider import account_of
from taskyard.errors import Conflict
from taskyard.harmless import safe
from taskyard.runtime.kind import Outcome
from taskyard.runtime.sweeping import remove_folder
from taskyard.turn import Policy, Turns
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.dreaming.changes import Changes
    from taskyard.dreaming.trees import Entry
    from taskyard.runtime.context import JobContext

#: Sessions that are laid out for the engine, the newest; and characters of each, and of all.
MOST_SESSIONS = 50
LONGEST_SESSION = 200_000
_LONGEST_ALL = 5_000_000

#: The diff, in the job's folder.
DIFF = "changes.diff"


class Wish(NamedTuple):
    """What is to be dreamt of, and by whom."""

    memory: str
    sources: tuple[str, ...]
    engine: str
    command: tuple[str, ...]
    model: str | None
    force: bool
    dry_run: bool
    project: Project


class _Scene(NamedTuple):
    """Where one dream works."""

    memory: str
    work: str  #: a folder of its own
    since: float  #: epoch seconds

    @property
    def stage(self) -> str:
        return f"{self.work}/memory"

    @property
    def transcripts(self) -> str:
        return f"{self.work}/sessions"


async def sit(wish: Wish, context: JobContext) -> Outcome:
    """Dream, and put what came of it in place; or only show it. The transcript ends with what came of it.

    Raises:
        DreamHeld: somebody is at it, or it is not the time.
        Conflict, StorageError: the result could not be put in place; nothing is changed.
    """
    try:
        outcome = await _sit(wish, context)
    except BaseException as error:
        note(context, str(error) or "It was stopped: the memory is as it was.")
        raise
    note(context, outcome.error or str(outcome.facts["note"]))
    return outcome


async def _sit(wish: Wish, context: JobContext) -> Outcome:
    side = Side(wish.memory)
    if wish.dry_run:
        scene = _Scene(wish.memory, f"{context.folder}/dream", lock.last_true(side) / 1e9)
        try:
            return await _Dream(wish, context, scene).rehearse()
        finally:
            remove_folder(scene.work)
    side.make()
    held = lock.hold(side)
    try:
        applying.settle(side)
        if not wish.force:
            gate = standing.stands(wish.memory, wish.sources, wish.project, config.load(), held=True)
            standing.refuse(gate)
        prior = lock.last_done(side)
        context.tell(phase=STARTING, priorMtime=prior // 1_000_000)
        try:
            claim = lock.claim(side, context.id, time.time_ns())
            return await _Dream(wish, context, _Scene(wish.memory, side.work, prior / 1e9)).work(side, claim)
        finally:
            applying.settle(side)
    finally:
        held.close()


class _Dream:
    """One dream at work."""

    def __init__(self, wish: Wish, context: JobContext, scene: _Scene) -> None:
        self._wish = wish
        self._context = context
        self._scene = scene
        self._sessions = self._skipped = 0

    async def work(self, side: Side, claim: dict[str, object]) -> Outcome:
        """Dream on a copy, and have it take the memory's place."""
        before, error, facts = await self._dreamt()
        if error:
            return Outcome(error=error, facts=facts)
        settings = config.load()
        after = trees.read(self._scene.stage)
        made = changes.between(before, after)
        self._write_diff(made)
        try:
            changes.check(before, after)
        except Conflict as refusal:
            place = applying.keep(side, f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{self._context.id}")
            return Outcome(error=f"{refusal} The result is in {place}.", facts=facts)
        if made.touched or _folders(before) != _folders(after):
            trees.put_links(before, self._scene.stage)
            facts["copy"] = applying.put_in_place(
                side, claim, trees.fingerprint(before), job=self._context.id, sync=settings.durability == "power"
            )
        lock.end_claim(side)
        applying.prune(side, settings.dream_copies)
        return self._done(made, facts)

    async def rehearse(self) -> Outcome:
        """Dream on a copy, and leave it at that."""
        before, error, facts = await self._dreamt()
        if error:
            return Outcome(error=error, facts=facts)
        made = changes.between(before, trees.read(self._scene.stage))
        self._write_diff(made)
        return self._done(made, facts)

    async def _dreamt(self) -> tuple[dict[str, Entry], str, dict[str, object]]:
        """Go through the four stages; what was there before, why it failed if it did, and what is known."""
        scene = self._scene
        os.mkdir(scene.work, 0o700)
        before = trees.copy(scene.memory, scene.stage)
        self._lay_out_sessions()
        self._context.tell(
            phase=STARTING, memory=scene.memory, sessions=self._sessions, skippedLines=self._skipped, touched=[]
        )
        watch = DreamWatch(self._context, scene.stage)
        error = ""
        try:
            notes: list[tuple[str, str]] = []
            turns = self._turns(watch)
            for stage in prompts.STAGES:
                watch.enters(stage)
                said = await turns.take(lambda _, stage=stage: self._once(stage, notes, watch))  # type: ignore[misc]
                if not said.is_complete:
                    error = f"stage {stage}: {said.failure}"
                    break
                notes.append((stage, said.text))
            watch.see()
            return before, error, watch.facts()
        finally:
            watch.close()

    def _turns(self, watch: DreamWatch) -> Turns:
        """Its turns, which wait together with all other agents on the account."""
        wish = self._wish
        account = account_of(wish.engine, wish.command, wish.model, wish.project.env)
        return Turns(wish.project.home, account, Policy.of(config.load()), show=watch.show_limit, record=watch.record)

    async def _once(self, stage: str, notes: list[tuple[str, str]], watch: DreamWatch) -> Said:
        """One stage, from its beginning."""
        return await engines.find(self._wish.engine).work(self._brief(stage, notes, watch), watch)

    def _brief(self, stage: str, notes: list[tuple[str, str]], watch: DreamWatch) -> Brief:
        scene = self._scene
        names = sorted(trees.signature(scene.stage))
        told = prompts.Scene(scene.stage, names, scene.transcripts, self._sessions)
        prompt = prompts.prompt(stage, told, notes)
        watch.record({"type": "prompt", "stage": stage, "text": prompt})
        env = {
            **self._wish.project.env,
            "TASKYARD_AGENT": self._context.id,
            "TASKYARD_DREAM_STAGE": stage,
            "TASKYARD_DREAM_TRANSCRIPTS": scene.transcripts,
        }
        return Brief(
            prompt,
            scene.stage,
            env,
            self._wish.model,
            self._wish.command,
            own_tools=config.load().agent_tools,
            permissions="edit",  # it reads what others wrote, and nobody is asked: it edits the copy, and runs nothing
            reads=(scene.transcripts,),
        )

    def _lay_out_sessions(self) -> None:
        """Write what was said in each session since the last time where the engine can read it."""
        os.mkdir(self._scene.transcripts, 0o700)
        room = _LONGEST_ALL
        found = standing.sessions_since(self._wish.sources, self._wish.project, self._scene.since)
        for source, session in found[:MOST_SESSIONS]:
            told = sources.find(source).read(session, min(LONGEST_SESSION, room))
            self._skipped += told.skipped
            text = told.text[: max(0, min(LONGEST_SESSION, room))]
            if not text:
                continue
            room -= len(text)
            self._sessions += 1
            when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(session.changed))
            cut = "; its end, the beginning is left out" if told.is_cut else ""
            name = f"{self._sessions:03d}-{source}-{re.sub(r'[^A-Za-z0-9_-]', '_', session.id)[:60]}.md"
            body = f"# A session of {when} ({source}{cut})\n\n{text}\n"
            files.create(f"{self._scene.transcripts}/{name}", body.encode("utf-8", "replace"))

    def _write_diff(self, made: Changes) -> None:
        lines = "\n".join(changes.diff(self._scene.memory, self._scene.stage, made))
        files.replace(f"{self._context.folder}/{DIFF}", (lines + "\n" if lines else "").encode("utf-8", "replace"))

    def _done(self, made: Changes, facts: dict[str, object]) -> Outcome:
        touched = [safe(name) for name in made.touched]
        names = ", ".join(touched[:5]) + (", …" if len(touched) > 5 else "")
        verb = "Would change" if self._wish.dry_run else "Improved"
        told = f"{verb} {len(touched)} of the memory's files: {names}." if touched else "Nothing was to be improved."
        counts = {"added": len(made.added), "changed": len(made.changed), "removed": len(made.removed)}
        return Outcome(
            facts={**facts, "note": told, "touched": touched[:MOST_NAMED], "touchedCount": len(touched), **counts}
        )


def _folders(tree: dict[str, Entry]) -> set[str]:
    return {name for name, entry in tree.items() if entry.kind == trees.FOLDER}
