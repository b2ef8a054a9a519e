"""From what people write to a workflow that can run; what cannot is refused with its place, before anything is done."""

from __future__ import annotations

import json
import os

from taskyard.disk import files
from taskyard.errors import BadWorkflow, MissingExtra, NotFound, StorageError, shown
from taskyard.workflows.checking import Checking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.workflows.model import Definition

    Path = tuple[str | int, ...]
    Lines = Mapping[Path, int]

#: A workflow is written by hand, or nearly so.
LARGEST = 1_000_000


def read_file(path: str, *, has_agents: bool) -> tuple[Definition, dict[str, object]]:
    """The workflow in a file, YAML or JSON: checked, and as it is written.

    Raises:
        BadWorkflow: it is none; says what, where and on which line.
        MissingExtra: it is YAML, and nothing here reads that.
        NotFound, StorageError: the file cannot be read.
    """
    file = os.path.basename(path)
    raw, lines = parsed(text_of(path), file)
    return Checking(file, lines, has_agents=has_agents).definition(raw)


def check(raw: object, *, has_agents: bool) -> tuple[Definition, dict[str, object]]:
    """A workflow given as plain data: checked, and as it was given.

    Raises:
        BadWorkflow: it is none.
    """
    return Checking("", {}, has_agents=has_agents).definition(raw)


def parsed(text: str, file: str = "", *, what: str = "A workflow") -> tuple[object, Lines]:
    """The data in a text, and the line of each part where that is known; `what` it is, for the error."""
    if text.lstrip().startswith("{"):
        return _json(text, file), {}
    try:
        from taskyard.workflows.yaml_text import BadYaml, load
    except ModuleNotFoundError as error:
        raise MissingExtra(f"{what} in YAML", "workflows", error.name or "") from error
    try:
        return load(text)
    except BadYaml as error:
        raise BadWorkflow(file, f"it {error}", line=error.line) from None


def text_of(path: str) -> str:
    """The text of a file that its owner names.

    Raises:
        BadWorkflow: it is no text.
        NotFound, StorageError: the file cannot be read.
    """
    # The last part may be a link: a file that its owner names is not one that others planted.
    try:
        data = files.read(os.path.realpath(path), most=LARGEST)
    except StorageError as error:
        raise StorageError(path, error.why) from None
    if data is None:
        raise NotFound(f"No file {shown(path)}.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadWorkflow(os.path.basename(path), f"it is no UTF-8 text ({error.reason})") from None


def _json(text: str, file: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_no_key_twice, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise BadWorkflow(file, f"it is no JSON: {error.msg}", line=error.lineno) from None
    except RecursionError:
        raise BadWorkflow(file, "it is nested too deeply") from None
    except ValueError as error:
        raise BadWorkflow(file, f"it {error}") from None


def _no_key_twice(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set[str]()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"says {name!r} twice")
            seen.add(name)
    return found


def _refuse(name: str) -> object:
    raise ValueError(f"has {name}, which is no value")
