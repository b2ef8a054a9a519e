"""Every rule a workflow must keep, each refusal with its place and line."""

from __future__ import annotations

import re

from taskyard.errors import BadText, shown
from taskyard.names import check_subject, check_text, nearest
from taskyard.shapes import as_list, as_object
from taskyard.workflows import expressions
from taskyard.workflows.model import Definition, Step, Wish
from taskyard.workflows.values import Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskyard.workflows.reading import Lines, Path

#: More steps than these are written by a program, which can use jobs itself.
MOST_STEPS = 500

#: What all steps together may need: following them must not take long.
MOST_NEEDS = 10_000

_TOP = ("name", "env", "steps", "cwd", "max-parallel", "timeout")
_WORK = ("run", "agent", "tasks")
_STEP = (
    "id", *_WORK, "needs", "env", "timeout", "retries", "retry-delay", "if", "cwd", "continue-on-error", "on-failure",
)  # fmt: skip
_AGENT = (
    "prompt", "engine", "command", "agent_type", "name", "description", "model", "worktree", "max_tokens", "max_cost",
)  # fmt: skip

#: What values of an agent are, where they are not text.
_NOT_TEXT: Mapping[str, tuple[type, ...]] = {"worktree": (bool,), "max_tokens": (int,), "max_cost": (int, float)}
_TASK = ("subject", "description", "owner", "needs")
_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", re.ASCII)


class Checking(Values):
    """The check of one workflow."""

    def __init__(self, file: str, lines: Lines, *, has_agents: bool) -> None:
        super().__init__(file, lines)
        self._has_agents = has_agents

    def definition(self, raw: object) -> tuple[Definition, dict[str, object]]:
        """The workflow that `raw` is; and `raw`, for whoever keeps it."""
        top = as_object(raw)
        if top is None:
            self.refuse((), "a workflow is a mapping with `steps`")
        self.known((), "the workflow", top, _TOP)
        listed = as_list(top.get("steps"))
        if not listed or len(listed) > MOST_STEPS:
            self.refuse(("steps",), f"`steps` must be a list of 1 to {MOST_STEPS} steps")
        steps = tuple(self._step(each, ("steps", at), at) for at, each in enumerate(listed))
        found = Definition(
            self.text(top, "name", (), "the workflow", longest=200, lines=False) or "workflow",
            steps,
            self.env(top, (), "the workflow"),
            self.text(top, "cwd", (), "the workflow"),
            self.whole(top, "max-parallel", (), "the workflow", least=1, most=1000),
            self.time(top, "timeout", (), "the workflow", least=0.001),
        )
        self._check_ids(steps)
        self._check_needs(found)
        self._check_references(found)
        return found, top

    # -- one step ----------------------------------------------------------------------------

    def _step(self, raw: object, path: Path, at: int) -> Step:
        given = as_object(raw)
        if given is None:
            self.refuse(path, f"step {at + 1} is no mapping")
        step_id = given.get("id", f"step-{at + 1}")
        if not isinstance(step_id, str) or _ID.fullmatch(step_id) is None:
            self.refuse(
                (*path, "id"), f"step {at + 1}: its id is {shown(step_id)}; letters, digits, _ and - are allowed"
            )
        where = f"step {step_id}"
        self.known(path, where, given, _STEP)
        if len([name for name in _WORK if name in given]) != 1:
            self.refuse(path, f"{where}: it needs exactly one of run, agent and tasks")
        return Step(
            step_id,
            self.text(given, "run", path, where, longest=100_000),
            self._agent(given, path, where),
            self._tasks(given, path, where),
            self._needs(given, path, where),
            self.env(given, path, where),
            self.text(given, "cwd", path, where),
            self.time(given, "timeout", path, where, least=0.001),
            self.whole(given, "retries", path, where, least=0, most=1000) or 0,
            1.0 if (delay := self.time(given, "retry-delay", path, where, least=0.0)) is None else delay,
            self._condition(given, path, where),
            self._goes_on(given, path, where),
        )

    def _agent(self, given: Mapping[str, object], path: Path, where: str) -> Mapping[str, object] | None:
        if "agent" not in given:
            return None
        here = (*path, "agent")
        if not self._has_agents:
            self.refuse(here, f"{where}: no kind of job local_agent is installed here, which `agent` needs")
        wanted = given["agent"]
        found = {"prompt": wanted} if isinstance(wanted, str) else as_object(wanted)
        if found is None or not isinstance(found.get("prompt"), str) or not str(found["prompt"]).strip():
            self.refuse(here, f"{where}: `agent` is a prompt, or a mapping with one")
        self.known(here, f"{where}: `agent`", found, _AGENT)
        words = as_list(found.get("command", []))
        if words is None or not all(isinstance(word, str) for word in words):
            self.refuse((*here, "command"), f"{where}: `command` of its agent must be a list of words")
        for name, value in found.items():
            kinds = _NOT_TEXT.get(name, (str,))
            if name != "command" and type(value) not in kinds:
                words_for = {bool: "true or false", int: "a number"}.get(kinds[0], "text")
                self.refuse((*here, name), f"{where}: `{name}` of its agent must be {words_for}")
        self.places(str(found["prompt"]), here, f"{where}: `agent`")
        return found

    def _tasks(self, given: Mapping[str, object], path: Path, where: str) -> tuple[Wish, ...]:
        if "tasks" not in given:
            return ()
        here = (*path, "tasks")
        listed = as_list(given["tasks"])
        if not listed or len(listed) > MOST_STEPS:
            self.refuse(here, f"{where}: `tasks` must be a list of 1 to {MOST_STEPS} subjects")
        raw = [each if isinstance(each, str) else as_object(each) for each in listed]
        subjects = [each if isinstance(each, str) else (each or {}).get("subject") for each in raw]
        found: list[Wish] = []
        for at, each in enumerate(raw):
            wish: dict[str, object] | None = {"subject": each} if isinstance(each, str) else each
            if wish is None:
                self.refuse((*here, at), f"{where}: a task is a subject, or a mapping with one")
            found.append(self._wish(wish, (*here, at), f"{where}: task {at + 1}", subjects[:at]))
        return tuple(found)

    def _wish(self, given: dict[str, object], path: Path, where: str, before: list[object]) -> Wish:
        self.known(path, where, given, _TASK)
        try:
            subject = check_subject(given.get("subject"))
            description = check_text("description", given.get("description", ""))
        except BadText as error:
            self.refuse(path, f"{where}: the {error.field} {error.why}")
        self.places(subject, path, where)
        self.places(description, path, where)
        needs = self.names(given, "needs", path, where)
        places = {subject: at for at, subject in reversed([*enumerate(before)]) if isinstance(subject, str)}
        for need in needs:
            if need not in places:
                self.refuse((*path, "needs"), f"{where}: it needs {shown(need)}, which is no subject before it")
        owner = self.text(given, "owner", path, where, longest=200, lines=False)
        return Wish(subject, description, owner, tuple(places[need] for need in needs))

    def _needs(self, given: Mapping[str, object], path: Path, where: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.names(given, "needs", path, where)))

    def _condition(self, given: Mapping[str, object], path: Path, where: str) -> str:
        wanted = given.get("if", "")
        if isinstance(wanted, bool):
            wanted = "true" if wanted else "false"
        if not isinstance(wanted, str):
            self.refuse((*path, "if"), f"{where}: `if` must be a condition, such as steps.test.exit_code == 0")
        if wanted.strip():
            try:
                expressions.parse(wanted)
            except expressions.BadExpression as error:
                self.refuse((*path, "if"), f"{where}: `if` {error}")
        return wanted.strip()

    def _goes_on(self, given: Mapping[str, object], path: Path, where: str) -> bool:
        tolerated, policy = given.get("continue-on-error", False), given.get("on-failure", "stop")
        if not isinstance(tolerated, bool):
            self.refuse((*path, "continue-on-error"), f"{where}: `continue-on-error` must be true or false")
        if policy not in ("stop", "continue"):
            self.refuse((*path, "on-failure"), f"{where}: `on-failure` must be stop or continue")
        return tolerated or policy == "continue"

    # -- all of them -------------------------------------------------------------------------

    def _check_ids(self, steps: tuple[Step, ...]) -> None:
        seen: set[str] = set()
        for at, step in enumerate(steps):
            if step.id in seen:
                self.refuse(("steps", at, "id"), f"two steps are called {step.id}")
            seen.add(step.id)

    def _check_needs(self, found: Definition) -> None:
        ids = [step.id for step in found.steps]
        known = set(ids)
        for at, step in enumerate(found.steps):
            for need in step.needs:
                if need not in known:
                    self.refuse(("steps", at, "needs"), f"step {step.id}: it needs {shown(need)}, {_hint(need, ids)}")
        if sum(len(step.needs) for step in found.steps) > MOST_NEEDS:
            self.refuse(("steps",), f"all `needs` together name more than {MOST_NEEDS:,} steps")
        if circle := _circle(found):
            at = ids.index(circle[0])
            self.refuse(("steps", at, "needs"), f"steps wait for each other: {' needs '.join(circle)}")

    def _check_references(self, found: Definition) -> None:
        for value in found.env.values():
            if any(place.steps for place in expressions.places(value)):
                self.refuse(("env",), "the workflow: `env` is known before any step, and cannot ask about one")
        for at, step in enumerate(found.steps):
            wanted = _asked(step)
            for asked in sorted(wanted - found.all_needs(step) if wanted else ()):
                known = asked in {each.id for each in found.steps}
                more = f"add it to `needs` of {step.id}" if known else _hint(asked, [each.id for each in found.steps])
                self.refuse(
                    ("steps", at), f"step {step.id}: it asks about step {asked}, {'so ' if known else ''}{more}"
                )


def _hint(name: str, known: Sequence[str]) -> str:
    near = nearest(name, known, most=1)
    return f"which is no step; did you mean {near[0]}?" if near else f"which is no step; there are {', '.join(known)}"


def _asked(step: Step) -> set[str]:
    """The steps that a step wants to know something of."""
    texts = [
        step.run or "",
        step.cwd or "",
        *step.env.values(),
        *(f"{wish.subject}\n{wish.description}" for wish in step.tasks),
    ]
    if step.agent is not None:
        texts.append(str(step.agent["prompt"]))
    found = {name for text in texts for place in expressions.places(text) for name in place.steps}
    return found | (set(expressions.parse(step.condition).steps) if step.condition else set())


def _circle(found: Definition) -> list[str]:
    """Steps that wait for each other, named once around; nothing if there are none."""
    left = {step.id: set(step.needs) for step in found.steps}
    while free := [step_id for step_id, needs in left.items() if not needs & left.keys()]:
        for step_id in free:
            del left[step_id]
    if not left:
        return []
    trail = [next(iter(left))]
    while (after := next(need for need in found.step(trail[-1]).needs if need in left)) not in trail:
        trail.append(after)
    return [*trail[trail.index(after) :], after]
