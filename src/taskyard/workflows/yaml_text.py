"""
YAML as plain data, with the line of everything in it. The one module here that needs PyYAML.

Only what JSON could say is read: no tags, no anchors and aliases (a few of them can stand for gigabytes), no key twice.
"""

from __future__ import annotations

import yaml

from taskyard.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable  # noqa: F401  (in a cast)

    from taskyard.workflows.reading import Lines, Path

#: Nested deeper than this is nothing a person wrote.
_DEEPEST = 20

#: Keys, values, beginnings and ends: five hundred steps have a hundred each.
_MOST_EVENTS = 50_000

#: Characters of a number: a sexagesimal one takes quadratic time to read.
_LONGEST_NUMBER = 100

#: libyaml, where PyYAML has it, reads a megabyte in less than a second; its composer does not bound its recursion.
_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_PLAIN = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null")}


class BadYaml(ValueError):
    """Why a text cannot be read, and at which line."""

    def __init__(self, why: str, line: int) -> None:
        super().__init__(why)
        self.line = line


def load(text: str) -> tuple[object, Lines]:
    """What a text says, and on which line each part of it stands.

    Raises:
        BadYaml: it cannot be read, or says more than plain data can.
    """
    try:
        _check_size(text)
        node: yaml.Node | None = _LOADER(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise BadYaml(f"is no YAML: {error.problem or error.context}", 0 if mark is None else mark.line + 1) from None
    except yaml.YAMLError as error:
        raise BadYaml(f"is no YAML: {' '.join(str(error).split())}", 0) from None
    except RecursionError:
        raise BadYaml("is nested too deeply", 0) from None
    if node is None:
        raise BadYaml("is empty", 1)
    reader = _Reader()
    return reader.plain(node, ()), reader.lines


def _check_size(text: str) -> None:
    depth = 0
    events = cast("Iterable[yaml.Event]", yaml.parse(text, Loader=_LOADER))  # pyright: ignore[reportUnknownMemberType]
    for count, event in enumerate(events):
        line = 0 if event.start_mark is None else event.start_mark.line + 1
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise BadYaml("is nested too deeply", line)
        if count > _MOST_EVENTS:
            raise BadYaml(f"has more than {_MOST_EVENTS:,} keys and values", line)


class _Reader:
    def __init__(self) -> None:
        self._constructor = yaml.constructor.SafeConstructor()
        self.lines: dict[Path, int] = {}
        self._seen: set[int] = set()

    def plain(self, node: yaml.Node, path: Path) -> object:
        line = node.start_mark.line + 1
        if id(node) in self._seen:
            raise BadYaml("has an alias (*name): write it out", line)
        self._seen.add(id(node))
        self.lines.setdefault(path, line)
        if len(path) > _DEEPEST:
            raise BadYaml("is nested too deeply", line)
        if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            return [self.plain(each, (*path, at)) for at, each in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode) and node.tag in _PLAIN:
            return self._scalar(node, line)
        if node.tag == "tag:yaml.org,2002:timestamp" and isinstance(node, yaml.ScalarNode):
            return str(node.value)
        raise BadYaml(f"has the tag {node.tag.removeprefix('tag:yaml.org,2002:')!r}: plain values only", line)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                raise BadYaml("has a key that is no plain word", line)
            name = str(key.value)  # as it is written: `on` and `yes` are words here
            if name in found:
                raise BadYaml(f"says {name!r} twice", line)
            self.lines[*path, name] = line
            found[name] = self.plain(value, (*path, name))
        return found

    def _scalar(self, node: yaml.ScalarNode, line: int) -> object:
        try:
            if not node.tag.endswith(":str") and len(node.value) > _LONGEST_NUMBER:
                raise ValueError
            value: object = self._constructor.construct_object(node)  # pyright: ignore[reportUnknownMemberType]
        except (ValueError, OverflowError, yaml.YAMLError):
            raise BadYaml(f"has {str(node.value)[:20]!r}, which is no such value", line) from None
        return value
