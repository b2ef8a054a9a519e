"""
Parse YAML into plain data with line numbers; the only module here that needs PyYAML.

Only what JSON can express is accepted: no tags, no anchors and aliases (a few of them can expand to gigabytes),
no duplicate keys.
"""

from __future__ import annotations

import yaml

from taskyard.core.values import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable  # noqa: F401  (in a cast)

    from taskyard.jobs.workflow.parse import KeyPath, LineNumbers

#: Nesting depth; no hand-written file is deeper.
_MAX_DEPTH = 20

#: Parser events (keys, values, starts, ends): five hundred steps have a hundred each.
_MAX_EVENTS = 50_000

#: Characters of a number: a sexagesimal one takes quadratic time to parse.
_MAX_NUMBER_CHARS = 100

#: libyaml, where PyYAML has it, parses a megabyte in less than a second; its composer does not bound its recursion.
_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_SCALAR_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null")}


class BadYaml(ValueError):
    """A text cannot be parsed: the reason, and the line."""

    def __init__(self, why: str, line: int) -> None:
        super().__init__(why)
        self.line = line


def load(text: str) -> tuple[object, LineNumbers]:
    """Parse a text; return its data, and the line of each part.

    Raises:
        BadYaml: It is not valid YAML, or has more than plain data.
    """
    try:
        _check_size(text)
        node: yaml.Node | None = _LOADER(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise BadYaml(f"is not YAML: {error.problem or error.context}", 0 if mark is None else mark.line + 1) from None
    except yaml.YAMLError as error:
        raise BadYaml(f"is not YAML: {' '.join(str(error).split())}", 0) from None
    except RecursionError:
        raise BadYaml("is nested too deeply", 0) from None
    if node is None:
        raise BadYaml("is empty", 1)
    reader = _NodeReader()
    return reader.plain(node, ()), reader.lines


def _check_size(text: str) -> None:
    depth = 0
    events = cast("Iterable[yaml.Event]", yaml.parse(text, Loader=_LOADER))  # pyright: ignore[reportUnknownMemberType]
    for count, event in enumerate(events):
        line = 0 if event.start_mark is None else event.start_mark.line + 1
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise BadYaml("is nested too deeply", line)
        if count > _MAX_EVENTS:
            raise BadYaml(f"has more than {_MAX_EVENTS:,} keys and values", line)


class _NodeReader:
    def __init__(self) -> None:
        self._constructor = yaml.constructor.SafeConstructor()
        self.lines: dict[KeyPath, int] = {}
        self._seen: set[int] = set()

    def plain(self, node: yaml.Node, path: KeyPath) -> object:
        line = node.start_mark.line + 1
        if id(node) in self._seen:
            raise BadYaml("has an alias (*name): write it out", line)
        self._seen.add(id(node))
        self.lines.setdefault(path, line)
        if len(path) > _MAX_DEPTH:
            raise BadYaml("is nested too deeply", line)
        if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            return [self.plain(each, (*path, at)) for at, each in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode) and node.tag in _SCALAR_TAGS:
            return self._scalar(node, line)
        if node.tag == "tag:yaml.org,2002:timestamp" and isinstance(node, yaml.ScalarNode):
            return str(node.value)
        raise BadYaml(f"has the tag {node.tag.removeprefix('tag:yaml.org,2002:')!r}: plain values only", line)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                raise BadYaml("has a key that is not a plain string", line)
            name = str(key.value)  # as written: `on` and `yes` are plain words here
            if name in found:
                raise BadYaml(f"says {name!r} twice", line)
            self.lines[*path, name] = line
            found[name] = self.plain(value, (*path, name))
        return found

    def _scalar(self, node: yaml.ScalarNode, line: int) -> object:
        try:
            if not node.tag.endswith(":str") and len(node.value) > _MAX_NUMBER_CHARS:
                raise ValueError
            value: object = self._constructor.construct_object(node)  # pyright: ignore[reportUnknownMemberType]
        except (ValueError, OverflowError, yaml.YAMLError):
            raise BadYaml(f"has {str(node.value)[:20]!r}, which is not a valid value", line) from None
        return value
