"""Parse and check workflow definitions (YAML, JSON or plain data), and draw them as graphs.

Everything is checked before anything runs; each error states its place in the definition and, where known,
the line. `draw_graph` writes Mermaid or DOT, with an arrow from a step to those that need it; graphs are
never read back.
"""

from __future__ import annotations

import json
import os
import re

from taskyard.core import files
from taskyard.core.values import as_list, as_object, check_subject, check_text, nearest
from taskyard.errors import BadText, BadWorkflow, MissingExtra, NotFound, StorageError, quote_value, truncate
from taskyard.jobs.workflow import expressions
from taskyard.jobs.workflow.model import Definition, Step, StepTask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import NoReturn

    from taskyard.jobs.workflow.model import StepState


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)", re.ASCII)
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

#: Seconds; the longest time limit of any job.
_MAX_SECONDS = 31 * 86_400.0


class ValueReader:
    """Reads values of one workflow. `path` is the key path of a value, `where` the same for error messages."""

    def __init__(self, file: str, lines: LineNumbers) -> None:
        self._file, self._lines = file, lines

    def known(self, path: KeyPath, where: str, given: Mapping[str, object], names: Iterable[str]) -> None:
        allowed = list(names)
        for name in given:
            if name not in allowed:
                near = nearest(name, allowed, most=1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(allowed)}"
                self.refuse((*path, name), f"{where}: it has no key {quote_value(name)}; {hint}")

    def text(
        self,
        given: Mapping[str, object],
        name: str,
        path: KeyPath,
        where: str,
        *,
        longest: int = 4096,
        lines: bool = True,
    ) -> str | None:
        value = given.get(name)
        if value is None and name not in given:
            return None
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            self.refuse((*path, name), f"{where}: `{name}` must be text, not {quote_value(value)}")
        if len(value) > longest:
            self.refuse((*path, name), f"{where}: `{name}` has {len(value):,} characters; at most {longest:,} fit")
        if not lines and not value.isprintable():
            self.refuse((*path, name), f"{where}: `{name}` must be one plain line")
        if lines:
            self.places(value, (*path, name), f"{where}: `{name}`")
        return value

    def env(self, given: Mapping[str, object], path: KeyPath, where: str) -> Mapping[str, str]:
        found = as_object(given.get("env", {}))
        if found is None:
            self.refuse((*path, "env"), f"{where}: `env` must be a mapping of names to values")
        env: dict[str, str] = {}
        for name, value in found.items():
            here = (*path, "env", name)
            if _VARIABLE.fullmatch(name) is None:
                self.refuse(here, f"{where}: {quote_value(name)} is not a valid variable name")
            if isinstance(value, float) or not isinstance(value, (str, int)) or "\0" in str(value):
                self.refuse(here, f"{where}: the variable {name} must be text; put it into quotes")
            env[name] = ("true" if value else "false") if isinstance(value, bool) else str(value)
            self.places(env[name], here, f"{where}: the variable {name}")
        return env

    def names(self, given: Mapping[str, object], name: str, path: KeyPath, where: str) -> list[str]:
        value = given.get(name, [])
        listed = [value] if isinstance(value, str) else as_list(value)
        if listed is None or not all(isinstance(each, str) for each in listed):
            self.refuse((*path, name), f"{where}: `{name}` must be a name or a list of names")
        return [str(each) for each in listed]

    def whole(
        self, given: Mapping[str, object], name: str, path: KeyPath, where: str, *, least: int, most: int
    ) -> int | None:
        value = given.get(name)
        if value is None and name not in given:
            return None
        if type(value) is not int or not least <= value <= most:
            self.refuse((*path, name), f"{where}: `{name}` must be a whole number from {least} to {most}")
        return value

    def time(self, given: Mapping[str, object], name: str, path: KeyPath, where: str, *, least: float) -> float | None:
        value = given.get(name)
        if value is None and name not in given:
            return None
        match = None if isinstance(value, bool) else _DURATION.fullmatch(str(value).strip().lower())
        found = -1.0 if match is None else float(match[1]) * _UNITS[match[2]]
        if not least <= found <= _MAX_SECONDS:
            self.refuse(
                (*path, name), f"{where}: `{name}` must be a time such as 90, 90s or 10m, not {quote_value(value)}"
            )
        return found

    def places(self, text: str, path: KeyPath, where: str) -> None:
        try:
            expressions.parse_placeholders(text)
        except expressions.BadExpression as error:
            self.refuse(path, f"{where} {error}")

    def refuse(self, path: KeyPath, why: str) -> NoReturn:
        line = 0
        while not (line := self._lines.get(path, 0)) and path:
            path = path[:-1]
        raise BadWorkflow(self._file, truncate(why, 300), line=line)


#: A workflow with more steps is written by a program, which can start jobs itself.
MAX_STEPS = 500

#: Total `needs` of all steps: bounds the time to follow them.
MAX_NEEDS = 10_000

_WORKFLOW_KEYS = ("name", "env", "steps", "cwd", "max-parallel", "timeout")
_ACTION_KEYS = ("run", "agent", "tasks")
_STEP_KEYS = (
    "id", *_ACTION_KEYS, "needs", "env", "timeout", "retries", "retry-delay", "if", "cwd", "continue-on-error",
    "on-failure",
)  # fmt: skip
_AGENT_KEYS = (
    "prompt", "engine", "command", "agent_type", "name", "description", "model", "worktree", "max_tokens", "max_cost",
)  # fmt: skip

#: Types of an agent's values that are not text.
_AGENT_VALUE_TYPES: Mapping[str, tuple[type, ...]] = {
    "worktree": (bool,),
    "max_tokens": (int,),
    "max_cost": (int, float),
}
_TASK_KEYS = ("subject", "description", "owner", "needs")
_STEP_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", re.ASCII)


class WorkflowParser(ValueReader):
    """Parses and checks one workflow."""

    def __init__(self, file: str, lines: LineNumbers, *, has_agents: bool) -> None:
        super().__init__(file, lines)
        self._has_agents = has_agents

    def definition(self, raw: object) -> tuple[Definition, dict[str, object]]:
        """Parse `raw`; return the definition, and `raw` for storage."""
        top = as_object(raw)
        if top is None:
            self.refuse((), "a workflow is a mapping with `steps`")
        self.known((), "the workflow", top, _WORKFLOW_KEYS)
        listed = as_list(top.get("steps"))
        if not listed or len(listed) > MAX_STEPS:
            self.refuse(("steps",), f"`steps` must be a list of 1 to {MAX_STEPS} steps")
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

    def _step(self, raw: object, path: KeyPath, at: int) -> Step:
        given = as_object(raw)
        if given is None:
            self.refuse(path, f"step {at + 1} is not a mapping")
        step_id = given.get("id", f"step-{at + 1}")
        if not isinstance(step_id, str) or _STEP_ID.fullmatch(step_id) is None:
            self.refuse(
                (*path, "id"), f"step {at + 1}: its id is {quote_value(step_id)}; letters, digits, _ and - are allowed"
            )
        where = f"step {step_id}"
        self.known(path, where, given, _STEP_KEYS)
        if len([name for name in _ACTION_KEYS if name in given]) != 1:
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

    def _agent(self, given: Mapping[str, object], path: KeyPath, where: str) -> Mapping[str, object] | None:
        if "agent" not in given:
            return None
        here = (*path, "agent")
        if not self._has_agents:
            self.refuse(here, f"{where}: no kind of job local_agent is installed here, which `agent` needs")
        wanted = given["agent"]
        found = {"prompt": wanted} if isinstance(wanted, str) else as_object(wanted)
        if found is None or not isinstance(found.get("prompt"), str) or not str(found["prompt"]).strip():
            self.refuse(here, f"{where}: `agent` is a prompt, or a mapping with one")
        self.known(here, f"{where}: `agent`", found, _AGENT_KEYS)
        words = as_list(found.get("command", []))
        if words is None or not all(isinstance(word, str) for word in words):
            self.refuse((*here, "command"), f"{where}: `command` of its agent must be a list of words")
        for name, value in found.items():
            kinds = _AGENT_VALUE_TYPES.get(name, (str,))
            if name != "command" and type(value) not in kinds:
                words_for = {bool: "true or false", int: "a number"}.get(kinds[0], "text")
                self.refuse((*here, name), f"{where}: `{name}` of its agent must be {words_for}")
        self.places(str(found["prompt"]), here, f"{where}: `agent`")
        return found

    def _tasks(self, given: Mapping[str, object], path: KeyPath, where: str) -> tuple[StepTask, ...]:
        if "tasks" not in given:
            return ()
        here = (*path, "tasks")
        listed = as_list(given["tasks"])
        if not listed or len(listed) > MAX_STEPS:
            self.refuse(here, f"{where}: `tasks` must be a list of 1 to {MAX_STEPS} subjects")
        raw = [each if isinstance(each, str) else as_object(each) for each in listed]
        subjects = [each if isinstance(each, str) else (each or {}).get("subject") for each in raw]
        found: list[StepTask] = []
        for at, each in enumerate(raw):
            wish: dict[str, object] | None = {"subject": each} if isinstance(each, str) else each
            if wish is None:
                self.refuse((*here, at), f"{where}: a task is a subject, or a mapping with one")
            found.append(self._wish(wish, (*here, at), f"{where}: task {at + 1}", subjects[:at]))
        return tuple(found)

    def _wish(self, given: dict[str, object], path: KeyPath, where: str, before: list[object]) -> StepTask:
        self.known(path, where, given, _TASK_KEYS)
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
                why = "which is not the subject of an earlier task"
                self.refuse((*path, "needs"), f"{where}: it needs {quote_value(need)}, {why}")
        owner = self.text(given, "owner", path, where, longest=200, lines=False)
        return StepTask(subject, description, owner, tuple(places[need] for need in needs))

    def _needs(self, given: Mapping[str, object], path: KeyPath, where: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.names(given, "needs", path, where)))

    def _condition(self, given: Mapping[str, object], path: KeyPath, where: str) -> str:
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

    def _goes_on(self, given: Mapping[str, object], path: KeyPath, where: str) -> bool:
        tolerated, policy = given.get("continue-on-error", False), given.get("on-failure", "stop")
        if not isinstance(tolerated, bool):
            self.refuse((*path, "continue-on-error"), f"{where}: `continue-on-error` must be true or false")
        if policy not in ("stop", "continue"):
            self.refuse((*path, "on-failure"), f"{where}: `on-failure` must be stop or continue")
        return tolerated or policy == "continue"

    # -- all steps ---------------------------------------------------------------------------

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
                    self.refuse(
                        ("steps", at, "needs"), f"step {step.id}: it needs {quote_value(need)}, {_hint(need, ids)}"
                    )
        if sum(len(step.needs) for step in found.steps) > MAX_NEEDS:
            self.refuse(("steps",), f"all `needs` together name more than {MAX_NEEDS:,} steps")
        if circle := _find_cycle(found):
            at = ids.index(circle[0])
            self.refuse(("steps", at, "needs"), f"steps wait for each other: {' needs '.join(circle)}")

    def _check_references(self, found: Definition) -> None:
        for value in found.env.values():
            if any(place.steps for place in expressions.parse_placeholders(value)):
                self.refuse(("env",), "the workflow: `env` is known before any step, and cannot ask about one")
        for at, step in enumerate(found.steps):
            wanted = _referenced_steps(step)
            for asked in sorted(wanted - found.transitive_needs(step) if wanted else ()):
                known = asked in {each.id for each in found.steps}
                more = f"add it to `needs` of {step.id}" if known else _hint(asked, [each.id for each in found.steps])
                self.refuse(
                    ("steps", at), f"step {step.id}: it asks about step {asked}, {'so ' if known else ''}{more}"
                )


def _hint(name: str, known: Sequence[str]) -> str:
    near = nearest(name, known, most=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return f"which is not a step; {hint}"


def _referenced_steps(step: Step) -> set[str]:
    """Return the steps that a step's expressions refer to."""
    texts = [
        step.run or "",
        step.cwd or "",
        *step.env.values(),
        *(f"{wish.subject}\n{wish.description}" for wish in step.tasks),
    ]
    if step.agent is not None:
        texts.append(str(step.agent["prompt"]))
    found = {name for text in texts for place in expressions.parse_placeholders(text) for name in place.steps}
    return found | (set(expressions.parse(step.condition).steps) if step.condition else set())


def _find_cycle(found: Definition) -> list[str]:
    """Return the steps of a dependency cycle, the first also at the end; empty if there is none."""
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


if TYPE_CHECKING:
    KeyPath = tuple[str | int, ...]
    LineNumbers = Mapping[KeyPath, int]

#: Bytes of a file: workflows are mostly written by hand.
MAX_FILE_BYTES = 1_000_000


def read_file(path: str, *, has_agents: bool) -> tuple[Definition, dict[str, object]]:
    """Read a workflow from a YAML or JSON file; return it checked, and as written.

    Raises:
        BadWorkflow: The file is not a valid workflow; states what, where and on which line.
        MissingExtra: It is YAML, and no YAML package is installed.
        NotFound, StorageError: The file cannot be read.
    """
    file = os.path.basename(path)
    raw, lines = parse_text(read_text(path), file)
    return WorkflowParser(file, lines, has_agents=has_agents).definition(raw)


def parse_definition(raw: object, *, has_agents: bool) -> tuple[Definition, dict[str, object]]:
    """Parse a workflow given as plain data; return it checked, and as given.

    Raises:
        BadWorkflow: It is not a valid workflow.
    """
    return WorkflowParser("", {}, has_agents=has_agents).definition(raw)


def parse_text(text: str, file: str = "", *, what: str = "A workflow") -> tuple[object, LineNumbers]:
    """Parse a text; return its data and, where known, the line of each part. `what`: its name in errors."""
    if text.lstrip().startswith("{"):
        return _parse_json(text, file), {}
    try:
        from taskyard.jobs.workflow.yaml_text import BadYaml, load
    except ModuleNotFoundError as error:
        raise MissingExtra(f"{what} in YAML", "workflows", error.name or "") from error
    try:
        return load(text)
    except BadYaml as error:
        raise BadWorkflow(file, f"it {error}", line=error.line) from None


def read_text(path: str) -> str:
    """Return the text of a file named by the user.

    Raises:
        BadWorkflow: It is not UTF-8 text.
        NotFound, StorageError: The file cannot be read.
    """
    # The last path component may be a symlink: the user named it, so another user cannot have planted it.
    try:
        data = files.read(os.path.realpath(path), most=MAX_FILE_BYTES)
    except StorageError as error:
        raise StorageError(path, error.why) from None
    if data is None:
        raise NotFound(f"No file {quote_value(path)}.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadWorkflow(os.path.basename(path), f"it is not UTF-8 text ({error.reason})") from None


def _parse_json(text: str, file: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise BadWorkflow(file, f"it is not JSON: {error.msg}", line=error.lineno) from None
    except RecursionError:
        raise BadWorkflow(file, "it is nested too deeply") from None
    except ValueError as error:
        raise BadWorkflow(file, f"it {error}") from None


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set[str]()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"says {name!r} twice")
            seen.add(name)
    return found


def _refuse_constant(name: str) -> object:
    raise ValueError(f"has {name}, which is not a JSON value")


_DOT_STYLES = {
    "waiting": 'style="rounded"',
    "running": 'style="rounded,bold", color="blue"',
    "completed": 'style="rounded,filled", fillcolor="lightgrey"',
    "failed": 'style="rounded,bold", color="red"',
    "skipped": 'style="rounded,dashed"',
}
_MERMAID_STYLES = {
    "running": "stroke:#06c,stroke-width:3px",
    "completed": "fill:#ddd,color:#555",
    "failed": "stroke:#c00,stroke-width:3px",
    "skipped": "stroke-dasharray: 4",
}


def draw_graph(workflow: Definition, states: Mapping[str, StepState], how: str) -> str:
    """Return the workflow as `mermaid` or `dot`, with the state of each step."""
    return _mermaid(workflow, states) if how == "mermaid" else _dot(workflow, states)


def _mermaid(workflow: Definition, states: Mapping[str, StepState]) -> str:
    names = {step.id: f"s{at}" for at, step in enumerate(workflow.steps)}
    lines = ["flowchart LR"]
    # Ids are letters, digits, _ and - only: nothing in them can end a label.
    lines += [f'  {names[step.id]}["{_label(step)}"]:::{states[step.id].status}' for step in workflow.steps]
    lines += [f"  {names[need]} --> {names[step.id]}" for step in workflow.steps for need in step.needs]
    lines += [f"  classDef {status} {look}" for status, look in _MERMAID_STYLES.items()]
    return "\n".join(lines) + "\n"


def _dot(workflow: Definition, states: Mapping[str, StepState]) -> str:
    name = workflow.name.replace("\\", "\\\\").replace('"', '\\"')
    lines = [f'digraph "{name}" {{', "  rankdir=LR;", "  node [shape=box];"]
    lines += [
        f'  "{step.id}" [label="{_label(step)}", {_DOT_STYLES[states[step.id].status]}];' for step in workflow.steps
    ]
    lines += [f'  "{need}" -> "{step.id}";' for step in workflow.steps for need in step.needs]
    return "\n".join([*lines, "}"]) + "\n"


def _label(step: Step) -> str:
    return step.id if step.kind == "run" else f"{step.id} ({step.kind})"
