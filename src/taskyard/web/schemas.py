"""The shapes of answers, for the API's description: those of records are read off the records themselves. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from taskyard.lists import ListCount
from taskyard.view.figures import Figures
from taskyard.view.job_views import JobView, Step
from taskyard.view.people import Person
from taskyard.view.pill import Pill
from taskyard.view.task_views import Counts, TaskView
from taskyard.view.timeline import Bar, Gap, Lane, Timeline

Schema = Mapping[str, object]

_RECORDS = (TaskView, JobView, Step, Figures, Person, Pill, Counts, Timeline, Lane, Bar, Gap)
_BY_NAME = {record.__name__: record for record in _RECORDS}

_PLAIN: Mapping[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "list": {"type": "array", "items": {"type": "string"}},
    "any": {},
    "object": {"type": "object"},
}


def ref(name: str) -> Schema:
    """A shape, by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def of(annotation: str) -> Schema:
    """The shape of what an annotation names: `int | None`, `tuple[str, ...]`, a record."""
    if annotation.endswith(" | None"):
        return {"anyOf": [of(annotation.removesuffix(" | None")), {"type": "null"}]}
    if annotation.startswith("tuple[") and annotation.endswith(", ...]"):
        return {"type": "array", "items": of(annotation[len("tuple[") : -len(", ...]")])}
    return ref(annotation) if annotation in _BY_NAME else _PLAIN[annotation]


def record(**fields: str | Schema) -> Schema:
    """An object with exactly these fields, each by its annotation or shape."""
    shapes = {name: of(shape) if isinstance(shape, str) else shape for name, shape in fields.items()}
    return {"type": "object", "properties": shapes, "required": list(shapes), "additionalProperties": False}


def rows(shape: Schema, *, may_go: bool = False) -> Schema:
    """Rows by their ids."""
    return {"type": "object", "additionalProperties": {"anyOf": [shape, {"type": "null"}]} if may_go else shape}


def array(shape: Schema) -> Schema:
    """Any number of them."""
    return {"type": "array", "items": shape}


def _of_record(kind: type[object], **more: str) -> Schema:
    annotations: Mapping[str, str] = kind.__annotations__
    return record(**{name: text for name, text in annotations.items() if name in kind._fields}, **more)  # type: ignore[attr-defined]


_TASKS: Mapping[str, str | Schema] = {"list": "str", "tasks": rows(ref("TaskView")), "task_order": "list"}
_PEOPLE: Mapping[str, str | Schema] = {"people": rows(ref("Person")), "people_order": "list"}
_JOBS: Mapping[str, str | Schema] = {"jobs": rows(ref("JobView")), "job_order": "list"}
_PILL: Mapping[str, str | Schema] = {"pill": ref("PillLine"), "attention": "int"}

_EDGE = record(id="str", subject="str", state="str", glyph="str", ascii="str", word="str", token="str")  # noqa: S106

_CHANGE = record(id="int", at="int", by="str | None", cause="str", via="str", note="str | None", words="str")


def components() -> dict[str, Schema]:
    """Every shape that has a name."""
    made: dict[str, Schema] = {record.__name__: _of_record(record) for record in _RECORDS if record is not Counts}
    made["Counts"] = _of_record(Counts, total="int")
    made["PillLine"] = _of_record(Pill, line="str")
    made["ListCount"] = _of_record(ListCount, current="bool")
    made["Took"] = _of_record(Figures, words="str")
    made["Error"] = {
        "type": "object",
        "required": ["schema_version", "error"],
        "properties": {
            "schema_version": {"const": 1},
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    }
    return {**made, **_answers()}


def _answers() -> dict[str, Schema]:
    return {
        "About": record(version="str", allow_actions="bool", list="str", person="str", now="int", server="str"),
        "Lists": array(ref("ListCount")),
        "Board": record(**_TASKS, **_PEOPLE, counts=ref("Counts"), headline="str", is_panel_shown="bool", id="str"),
        "Graph": record(**_TASKS, counts=ref("Counts"), id="str"),
        "Background": record(list="str", **_JOBS, **_PILL, id="str"),
        "Snapshot": record(
            **_TASKS,
            **_PEOPLE,
            **_JOBS,
            **_PILL,
            counts=ref("Counts"),
            headline="str",
            is_panel_shown="bool",
            problems="list",
            is_disconnected="bool",
            lists="list",
            id="str",
        ),
        "TimelineOfList": {**_of_record(Timeline, list="str")},
        "Task": record(
            task="object",
            view={"anyOf": [ref("TaskView"), {"type": "null"}]},
            description="str",
            edges=record(blocked_by=array(_EDGE), blocks=array(_EDGE)),
            history=array(_CHANGE),
            figures=ref("Took"),
            jobs="list",
        ),
        "Job": record(view=ref("JobView"), record="object", figures=ref("Took")),
        "Window": _window(),
        "Found": record(offset="int | None"),
        "Done": {"type": "object", "description": "What was changed, as the command line prints it with --json."},
    }


def _window() -> Schema:
    run = {"type": "array", "prefixItems": [{"type": "string"}, {"type": "string"}], "minItems": 2, "maxItems": 2}
    return record(
        start="int",
        end="int",
        size="int",
        omitted="int",
        is_over="bool",
        partial="bool",
        restarted="bool",
        offsets=array({"type": "integer"}),
        lines=array(array(run)),
    )
