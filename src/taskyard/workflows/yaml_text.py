"""
YAML as plain data, with the line of everything in it. The one module here that needs PyYAML.

Only what JSON could say is read: no tags, no anchors and aliases (a few of them can stand for gigabytes), no key twice.
"""

from __future__ import annotations

import yaml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.workflows.reading import Lines, Path

#: Nested deeper than this is nothing a person wrote.
_DEEPEST = 20

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
        node: yaml.Node | None = yaml.SafeLoader(text).get_single_node()
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


class _Reader:
    def __init__(self) -> None:
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
            return _scalar(node, line)
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


def _scalar(node: yaml.ScalarNode, line: int) -> object:
    try:
        value: object = yaml.constructor.SafeConstructor().construct_object(node)  # pyright: ignore[reportUnknownMemberType]
    except (ValueError, OverflowError, yaml.YAMLError):
        raise BadYaml(f"has {str(node.value)[:20]!r}, which is no such value", line) from None
    return value
