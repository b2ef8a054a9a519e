"""
The list against a model: agents, foreign programs and restarts in any order.

The model is a dictionary of tasks and a few sentences about what each verb does. After every step
the list says the same as the model, and what must always hold does.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, precondition, rule

import taskyard
from support.scale import FULL, scale
from support.yards import open_yard, write_task
from taskyard.errors import AlreadyClaimed, Conflict, Cycle, LeaseLost, NotFound, StillOpen, TaskyardError
from taskyard.tasks import graph
from taskyard.tasks.model import Task, TaskStatus

AGENTS = ("ada", "bob", "eve")

#: A failure is shrunk only in a soak: minutes of it are longer than an ordinary run may take.
PHASES = tuple(phase for phase in Phase if FULL or phase not in (Phase.shrink, Phase.explain))


class Known(NamedTuple):
    """What the model knows of a task."""

    subject: str
    status: str = "pending"
    owner: str | None = None
    blocked_by: frozenset[str] = frozenset()


def as_known(task: Task) -> Known:
    return Known(task.subject, task.status.value, task.owner, frozenset(task.blocked_by))


class ListMachine(RuleBasedStateMachine):
    """Several yards on one folder."""

    ids = Bundle("ids")

    @initialize(foreign=st.booleans())
    def begin(self, foreign: bool) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="machine-", dir=os.environ["TASKYARD_MACHINES"]))
        self.foreign = foreign
        self.yards = [self._opened(agent) for agent in AGENTS]
        self.live: dict[str, Known] = {}
        self.gone: dict[str, str] = {}  # id → the cause its removal must have in the log
        self.claims: dict[str, int] = {}  # id → whose claim stands
        self.claimed: set[tuple[int, str]] = set()  # who ever claimed what, since it was opened

    def _opened(self, agent: str) -> taskyard.Yard:
        return open_yard(self.root, agent, foreign=self.foreign, person=True)

    @property
    def folder(self) -> Path:
        return self.root / "plan"

    def open_blockers(self, task_id: str) -> set[str]:
        blockers = self.live[task_id].blocked_by
        return {b for b in blockers if b in self.live and self.live[b].status != "completed"}

    # -- what agents do ----------------------------------------------------------------------

    @precondition(lambda self: len(self.live) < 7)
    @rule(target=ids, who=st.integers(0, 2), before=st.lists(ids, max_size=2), after=st.lists(ids, max_size=2))
    def create(self, who: int, before: list[str], after: list[str]) -> object:
        yard = self.yards[who]
        try:
            task = yard.tasks.create("new", blocked_by=before, blocks=after)
        except NotFound:
            assert not {*before, *after} <= self.live.keys()
            return multiple()
        except Cycle:
            return multiple()
        assert {*before, *after} <= self.live.keys()
        assert task.id not in self.live and task.id not in self.gone, "an id came back"
        assert all(int(task.id) > int(other) for other in (*self.live, *self.gone)), "ids do not grow"
        self.live[task.id] = Known("new", blocked_by=frozenset(before))
        for other in after:
            self._wait(other, task.id)
        return task.id

    def _wait(self, task_id: str, blocker: str) -> None:
        known = self.live[task_id]
        self.live[task_id] = known._replace(blocked_by=known.blocked_by | {blocker})

    @rule(who=st.integers(0, 2), task_id=ids)
    def claim(self, who: int, task_id: str) -> None:
        name = AGENTS[who]
        known = self.live.get(task_id)
        may = (
            known is not None
            and known.status != "completed"
            and known.owner in (None, name)
            and not self.open_blockers(task_id)
        )
        try:
            self.yards[who].tasks.claim(task_id)
        except (Conflict, NotFound):
            assert not may
            return
        assert may and known is not None
        self._hold(who, task_id, known)

    @rule(who=st.integers(0, 2))
    def claim_next(self, who: int) -> None:
        free = [i for i, k in self.live.items() if k[1:3] == ("pending", None) and not self.open_blockers(i)]
        found = self.yards[who].tasks.claim_next()
        assert (found.id if found else None) == min(free, key=int, default=None)
        if found:
            self._hold(who, found.id, self.live[found.id])

    def _hold(self, who: int, task_id: str, known: Known) -> None:
        self.live[task_id] = known._replace(owner=AGENTS[who])
        self.claims[task_id] = who
        self.claimed.add((who, task_id))

    def _is_fenced(self, who: int, task_id: str) -> bool:
        """Whether somebody else ended a claim this agent still believes in."""
        return (who, task_id) in self.claimed and self.claims.get(task_id) != who

    @rule(
        who=st.integers(0, 1), task_id=ids, statuses=st.lists(st.sampled_from(list(TaskStatus)), min_size=1, max_size=4)
    )
    def work(self, who: int, task_id: str, statuses: list[TaskStatus]) -> None:
        for status in statuses:
            self._move(who, task_id, status.value)

    def _move(self, who: int, task_id: str, status: str) -> None:
        known, name = self.live.get(task_id), AGENTS[who]
        try:
            task = self.yards[who].tasks.update(task_id, status=status)
        except LeaseLost:
            assert self._is_fenced(who, task_id)
            return
        except (Conflict, NotFound):
            assert known is None or self._may_not_move(task_id, known, status, name)
            return
        assert known is not None
        if status != known.status:
            assert not self._may_not_move(task_id, known, status, name)
            owner = None if status == "pending" else known.owner
            owner = name if status == "in_progress" and owner is None else owner
            self.live[task_id] = known._replace(status=status, owner=owner)
            if status == "in_progress":
                self._hold(who, task_id, self.live[task_id])
            else:
                self.claims.pop(task_id, None)
        if status == "completed" != known.status:
            ready = {i for i, k in self.live.items() if task_id in k.blocked_by and k.status == "pending"}
            assert set(task.ready) == {i for i in ready if not self.open_blockers(i)}

    def _may_not_move(self, task_id: str, known: Known, status: str, name: str) -> bool:
        theirs = known.owner not in (None, name) and known.status != "completed"
        if theirs and (status == "in_progress" or (task_id in self.claims and status != known.status)):
            return True
        if status in (known.status, "pending"):
            return False
        return known.status == "completed" or bool(self.open_blockers(task_id))

    @rule(who=st.integers(0, 2), task_id=ids)
    def rename(self, who: int, task_id: str) -> None:
        try:
            self.yards[who].tasks.update(task_id, subject=f"by {AGENTS[who]}")
        except LeaseLost:
            assert self._is_fenced(who, task_id)
            return
        except NotFound:
            assert task_id not in self.live
            return
        self.live[task_id] = self.live[task_id]._replace(subject=f"by {AGENTS[who]}")

    @rule(who=st.integers(0, 2), blocker=ids, blocked=ids)
    def block(self, who: int, blocker: str, blocked: str) -> None:
        try:
            self.yards[who].tasks.block(blocked, by=blocker)
        except NotFound:
            assert not {blocker, blocked} <= self.live.keys()
        except Cycle as refusal:
            assert blocker == blocked or {blocker, blocked} <= set(refusal.path)
        else:
            assert {blocker, blocked} <= self.live.keys()
            self._wait(blocked, blocker)

    @rule(who=st.integers(0, 2), blocker=ids, blocked=ids)
    def unblock(self, who: int, blocker: str, blocked: str) -> None:
        try:
            self.yards[who].tasks.unblock(blocked, by=blocker)
        except NotFound:
            assert not {blocker, blocked} <= self.live.keys()
            return
        known = self.live[blocked]
        self.live[blocked] = known._replace(blocked_by=known.blocked_by - {blocker})

    @rule(who=st.integers(0, 2), task_id=ids, verb=st.sampled_from(["delete", "archive"]))
    def remove(self, who: int, task_id: str, verb: str) -> None:
        tasks = self.yards[who].tasks
        known = self.live.get(task_id)
        try:
            tasks.delete(task_id) if verb == "delete" else tasks.archive(task_id)
        except StillOpen:
            assert verb == "archive" and known is not None and known.status != "completed"
            return
        except LeaseLost:
            assert verb == "delete" and self._is_fenced(who, task_id)
            return
        except AlreadyClaimed:
            assert verb == "delete" and known is not None and known.status != "completed"
            assert self.claims.get(task_id, who) != who, "nobody else holds it"
            return
        except NotFound as refusal:
            assert task_id not in self.live
            assert "restore" in str(refusal), "a task that was there can be brought back, and the error says so"
            return
        held_by_another = self.claims.get(task_id, who) != who and known is not None and known.status != "completed"
        assert verb == "archive" or not held_by_another
        self._drop(task_id, verb)
        for other, known in self.live.items():
            self.live[other] = known._replace(blocked_by=known.blocked_by - {task_id})

    def _drop(self, task_id: str, cause: str) -> None:
        del self.live[task_id]
        self.claims.pop(task_id, None)
        self.gone[task_id] = cause

    @rule(who=st.integers(0, 2), task_id=ids)
    def restore(self, who: int, task_id: str) -> None:
        try:
            task = self.yards[who].tasks.restore(task_id)
        except Conflict:
            assert task_id in self.live
            return
        assert task_id in self.gone
        del self.gone[task_id]
        assert task.owner is None or task.is_done
        # Which dependencies still make sense is the list's to say; that none is wrong is checked below.
        for found in self.yards[who].tasks.list():
            if found.id == task_id:
                self.live[task_id] = as_known(found)
            elif task_id in found.blocked_by:
                self._wait(found.id, task_id)

    @precondition(lambda self: len(self.live) > 4)
    @rule(who=st.integers(0, 2))
    def reset(self, who: int) -> None:
        self.yards[who].tasks.reset()
        for task_id in list(self.live):
            self._drop(task_id, "reset")

    # -- what others do ----------------------------------------------------------------------

    @precondition(lambda self: self.foreign and self.live)
    @rule(data=st.data(), subject=st.sampled_from(["theirs", "also theirs"]))
    def another_program_writes(self, data: st.DataObject, subject: str) -> None:
        task_id = data.draw(st.sampled_from(sorted(self.live)))
        raw = json.loads((self.folder / f"{task_id}.json").read_bytes())
        write_task(self.folder, task_id, **{**raw, "subject": subject})
        self.live[task_id] = self.live[task_id]._replace(subject=subject)

    @precondition(lambda self: self.foreign and self.live)
    @rule(data=st.data())
    def another_program_deletes(self, data: st.DataObject) -> None:
        task_id = data.draw(st.sampled_from(sorted(self.live)))
        for yard in self.yards[:1]:
            yard.tasks.list()  # what nobody of ours ever saw nobody can restore
        (self.folder / f"{task_id}.json").unlink()
        self._drop(task_id, "external")
        for other, known in self.live.items():
            if task_id in known.blocked_by or task_id in self._raw(other)["blocks"]:
                self._strip(other, task_id)
                self.live[other] = known._replace(blocked_by=known.blocked_by - {task_id})

    def _raw(self, task_id: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = json.loads((self.folder / f"{task_id}.json").read_bytes())
        return found

    def _strip(self, task_id: str, gone: str) -> None:
        raw = self._raw(task_id)
        sides = {side: [other for other in raw[side] if other != gone] for side in ("blocks", "blockedBy")}
        write_task(self.folder, task_id, **{**raw, **sides})

    @rule(who=st.integers(0, 2))
    def reopen(self, who: int) -> None:
        self.yards[who].close()
        self.yards[who] = self._opened(AGENTS[who])
        self.claimed = {claim for claim in self.claimed if claim[0] != who}

    # -- what always holds -------------------------------------------------------------------

    @invariant()
    def every_yard_sees_what_the_model_knows(self) -> None:
        for yard in self.yards:
            found = {task.id: as_known(task) for task in yard.tasks.list()}
            assert found == self.live

    @invariant()
    def dependencies_are_symmetric_on_disk_and_close_no_circle(self) -> None:
        tasks = {task_id: self._raw(task_id) for task_id in self.live}
        forward = {(task_id, other) for task_id, raw in tasks.items() for other in raw["blocks"]}
        backward = {(other, task_id) for task_id, raw in tasks.items() for other in raw["blockedBy"]}
        assert forward == backward
        assert graph.find_cycles({task.id: task for task in self.yards[0].tasks.list()}) == []

    @invariant()
    def every_removal_is_in_the_log_with_actor_and_cause(self) -> None:
        for task_id, cause in self.gone.items():
            last = self.yards[1].tasks.log(task_id)[-1]
            assert last.tasks[task_id] is None
            assert last.act.cause == cause
            assert (last.act.by is None) == (cause == "external")

    @invariant()
    def locks_and_drafts_are_gone(self) -> None:
        left = [name for name in os.listdir(self.folder) if name.endswith(".json.lock")] if self.folder.exists() else []
        drafts = os.listdir(self.folder / ".taskyard" / "tmp") if (self.folder / ".taskyard").exists() else []
        assert (left, drafts) == ([], [])

    def teardown(self) -> None:
        if not hasattr(self, "root"):
            return
        try:
            for task_id in sorted(self.gone, key=int):
                assert self.yards[2].tasks.restore(task_id).id == task_id, "not everything can be brought back"
            assert {task.id for task in self.yards[0].tasks.list()} == self.live.keys() | self.gone.keys()
        except TaskyardError as error:
            raise AssertionError(f"not everything can be brought back: {error}") from error
        finally:
            for yard in self.yards:
                yard.close()
            shutil.rmtree(self.root)


@pytest.mark.req("L-03", "L-06", "L-11")
@pytest.mark.timeout(300)
def test_the_list_behaves_as_its_model_whatever_happens_in_whatever_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    monkeypatch.setenv("TASKYARD_MACHINES", str(tmp_path))
    run_state_machine_as_test(
        ListMachine, settings=settings(max_examples=scale(600), stateful_step_count=30, deadline=None, phases=PHASES)
    )
