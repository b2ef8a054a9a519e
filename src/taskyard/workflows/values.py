"""Values as a workflow may hold them: each read by its rule, or refused with its place and line."""

from __future__ import annotations

import re

from taskyard.errors import BadWorkflow, clipped, shown
from taskyard.names import nearest
from taskyard.shapes import as_list, as_object
from taskyard.workflows import expressions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import NoReturn

    from taskyard.workflows.reading import Lines, Path

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)", re.ASCII)
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

#: As long as any job may take.
_LONGEST_TIME = 31 * 86_400.0


class Values:
    """Reads values of one workflow. `path` is where in it a value stands, `where` the same in words."""

    def __init__(self, file: str, lines: Lines) -> None:
        self._file, self._lines = file, lines

    def known(self, path: Path, where: str, given: Mapping[str, object], names: Iterable[str]) -> None:
        allowed = list(names)
        for name in given:
            if name not in allowed:
                near = nearest(name, allowed, most=1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(allowed)}"
                self.refuse((*path, name), f"{where}: it has no key {shown(name)}; {hint}")

    def text(
        self, given: Mapping[str, object], name: str, path: Path, where: str, *, longest: int = 4096, lines: bool = True
    ) -> str | None:
        value = given.get(name)
        if value is None and name not in given:
            return None
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            self.refuse((*path, name), f"{where}: `{name}` must be text, not {shown(value)}")
        if len(value) > longest:
            self.refuse((*path, name), f"{where}: `{name}` has {len(value):,} characters; at most {longest:,} fit")
        if not lines and not value.isprintable():
            self.refuse((*path, name), f"{where}: `{name}` must be one plain line")
        if lines:
            self.places(value, (*path, name), f"{where}: `{name}`")
        return value

    def env(self, given: Mapping[str, object], path: Path, where: str) -> Mapping[str, str]:
        found = as_object(given.get("env", {}))
        if found is None:
            self.refuse((*path, "env"), f"{where}: `env` must be a mapping of names to values")
        env: dict[str, str] = {}
        for name, value in found.items():
            here = (*path, "env", name)
            if _VARIABLE.fullmatch(name) is None:
                self.refuse(here, f"{where}: {shown(name)} is no name for a variable")
            if isinstance(value, float) or not isinstance(value, (str, int)) or "\0" in str(value):
                self.refuse(here, f"{where}: the variable {name} must be text; put it into quotes")
            env[name] = ("true" if value else "false") if isinstance(value, bool) else str(value)
            self.places(env[name], here, f"{where}: the variable {name}")
        return env

    def names(self, given: Mapping[str, object], name: str, path: Path, where: str) -> list[str]:
        value = given.get(name, [])
        listed = [value] if isinstance(value, str) else as_list(value)
        if listed is None or not all(isinstance(each, str) for each in listed):
            self.refuse((*path, name), f"{where}: `{name}` must be a name or a list of names")
        return [str(each) for each in listed]

    def whole(
        self, given: Mapping[str, object], name: str, path: Path, where: str, *, least: int, most: int
    ) -> int | None:
        value = given.get(name)
        if value is None and name not in given:
            return None
        if type(value) is not int or not least <= value <= most:
            self.refuse((*path, name), f"{where}: `{name}` must be a whole number from {least} to {most}")
        return value

    def time(self, given: Mapping[str, object], name: str, path: Path, where: str, *, least: float) -> float | None:
        value = given.get(name)
        if value is None and name not in given:
            return None
        match = None if isinstance(value, bool) else _TIME.fullmatch(str(value).strip().lower())
        found = -1.0 if match is None else float(match[1]) * _UNITS[match[2]]
        if not least <= found <= _LONGEST_TIME:
            self.refuse((*path, name), f"{where}: `{name}` must be a time such as 90, 90s or 10m, not {shown(value)}")
        return found

    def places(self, text: str, path: Path, where: str) -> None:
        try:
            expressions.places(text)
        except expressions.BadExpression as error:
            self.refuse(path, f"{where} {error}")

    def refuse(self, path: Path, why: str) -> NoReturn:
        line = 0
        while not (line := self._lines.get(path, 0)) and path:
            path = path[:-1]
        raise BadWorkflow(self._file, clipped(why, 300), line=line)
