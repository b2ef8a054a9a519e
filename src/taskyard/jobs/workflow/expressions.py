"""
Expressions of `if:` and `${{ … }}`: comparisons and three status functions, without side effects.

    success()  failure()  always()
    env.NAME   steps.ID.status   steps.ID.exit_code   steps.ID.output
    'text'  12  true  false  null      == != < <= > >=   ! && ||   ( )

Texts are equal if all characters are; where one side is a number, both are converted to numbers; < and > are
for numbers only. An unset variable is the empty text.
"""

from __future__ import annotations

import re

from taskyard.core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from taskyard.jobs.workflow.model import StepState

    Value = str | float | bool | None
    Node = Callable[["Scope"], Value]

#: Characters and nesting depth; no hand-written condition has more.
MAX_LENGTH, _MAX_DEPTH = 1000, 40

#: `${{ … }}` in one text.
MAX_PLACEHOLDERS = 1000

_TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)|(?P<number>\d+(?:\.\d+)?)|'(?P<text>(?:[^']|'')*)'"
    r"|(?P<sign>==|!=|<=|>=|&&|\|\||[<>!()]))",
    re.ASCII,
)
_STATUS_FUNCTIONS = ("success", "failure", "always")
_CONSTANTS: Mapping[str, Value] = {"true": True, "false": False, "null": None}
_FIELDS = ("status", "exit_code", "output")


class BadExpression(ValueError):
    """An invalid expression; the message continues a sentence that begins with "it"."""


class Scope(NamedTuple):
    """The values that an expression can use."""

    env: Mapping[str, str]
    steps: Mapping[str, StepState]
    success: bool = True
    failure: bool = False


class Expression(NamedTuple):
    """A parsed expression."""

    value: Node
    steps: frozenset[str]  #: ids of the steps it refers to
    asks: frozenset[str]  #: the status functions it calls


def parse(text: str) -> Expression:
    """Parse a condition; `${{ }}` around all of it is optional.

    Raises:
        BadExpression: It is invalid.
    """
    inner = text.strip()
    if inner.startswith("${{") and inner.endswith("}}"):
        inner = inner[3:-2]
    if len(inner) > MAX_LENGTH:
        raise BadExpression(f"has {len(inner):,} characters; at most {MAX_LENGTH:,} are understood")
    reader = _Parser(_tokenize(inner))
    node = reader.either()
    reader.expect_end()
    return Expression(node, frozenset(reader.steps), frozenset(reader.asks))


def parse_placeholders(text: str) -> list[Expression]:
    """Parse the content of each `${{ … }}` in a text.

    Raises:
        BadExpression: One of them is invalid, or calls a status function.
    """
    _, inside = _split(text)
    found = [parse(each) for each in inside]
    if any(each.asks for each in found):
        raise BadExpression("asks success(), failure() or always(), which are for `if`")
    return found


def interpolate(text: str, scope: Scope) -> str:
    """Replace each `${{ … }}` in a text by its value; not for text that a shell will run."""
    around, inside = _split(text)
    return _join(around, [format_value(parse(each).value(scope)) for each in inside])


def as_variables(command: str, scope: Scope) -> tuple[str, dict[str, str]]:
    """Replace each `${{ … }}` by a shell variable; return the command and the values, which never become code."""
    around, inside = _split(command)
    values = {f"TASKYARD_VALUE_{at}": format_value(parse(each).value(scope)) for at, each in enumerate(inside, 1)}
    return _join(around, [f"${{{name}}}" for name in values]), values


def _split(text: str) -> tuple[list[str], list[str]]:
    """Return the text around each `${{ … }}` (one part more than there are placeholders), and the text inside.

    Raises:
        BadExpression: A placeholder is unterminated, or there are too many.
    """
    first, *rest = text.split("${{", MAX_PLACEHOLDERS + 1)
    if len(rest) > MAX_PLACEHOLDERS:
        raise BadExpression(f"has ${{{{ more than {MAX_PLACEHOLDERS:,} times")
    around, inside = [first], list[str]()
    for each in rest:
        within, end, after = each.partition("}}")
        if not end:
            raise BadExpression("has ${{ without }}")
        inside.append(within)
        around.append(after)
    return around, inside


def _join(around: Sequence[str], values: Sequence[str]) -> str:
    parts = [around[0]]
    for value, after in zip(values, around[1:]):
        parts += [value, after]
    return "".join(parts)


def format_value(value: Value) -> str:
    """Return a value as text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else f"{value:g}"


def _tokenize(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise BadExpression(f"is not understood from {text[at:].strip()[:20]!r} on")
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return found


class _Parser:
    """Recursive-descent parser of one expression, from the lowest to the highest precedence."""

    def __init__(self, tokens: Sequence[tuple[str, str]]) -> None:
        self._tokens = [*tokens, ("end", "")]
        self._at = self._depth = 0
        self.steps: set[str] = set()
        self.asks: set[str] = set()

    def _take(self, *signs: str) -> str:
        kind, text = self._tokens[self._at]
        if kind == "sign" and text in signs:
            self._at += 1
            return text
        return ""

    def expect_end(self) -> None:
        kind, text = self._tokens[self._at]
        if kind != "end":
            raise BadExpression(f"goes on with {text!r} where it should end")

    def either(self) -> Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise BadExpression("is nested too deeply")
        node = self._both()
        while self._take("||"):
            node = _or(node, self._both())
        self._depth -= 1
        return node

    def _both(self) -> Node:
        node = self._negated()
        while self._take("&&"):
            node = _and(node, self._negated())
        return node

    def _negated(self) -> Node:
        signs = 0
        while self._take("!"):
            signs += 1
        node = self._compared()
        return node if not signs else _not(node, signs % 2 == 1)

    def _compared(self) -> Node:
        left = self._plain()
        if sign := self._take("==", "!=", "<=", ">=", "<", ">"):
            return _compare(sign, left, self._plain())
        return left

    def _plain(self) -> Node:
        if self._take("("):
            node = self.either()
            if not self._take(")"):
                raise BadExpression("has ( without )")
            return node
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "text":
            return _constant(text.replace("''", "'"))
        if kind == "number":
            return _constant(float(text))
        if kind == "name":
            return self._named(text)
        raise BadExpression("ends where a value should stand" if kind == "end" else f"has {text!r} instead of a value")

    def _named(self, name: str) -> Node:
        if self._take("("):
            if name not in _STATUS_FUNCTIONS or not self._take(")"):
                raise BadExpression(f"asks {name}(…); there are success(), failure() and always()")
            self.asks.add(name)
            return _status_function(name)
        if name in _CONSTANTS:
            return _constant(_CONSTANTS[name])
        first, *rest = name.split(".")
        if first == "env" and len(rest) == 1:
            return _variable(rest[0])
        if first == "steps" and len(rest) == 2 and rest[1] in _FIELDS:
            self.steps.add(rest[0])
            return _step_field(rest[0], rest[1])
        raise BadExpression(f"names {name}; there are env.NAME and steps.ID.status, .exit_code and .output")


def _constant(value: Value) -> Node:
    return lambda scope: value


def _variable(name: str) -> Node:
    return lambda scope: scope.env.get(name, "")


def _step_field(step_id: str, field: str) -> Node:
    def fact(scope: Scope) -> Value:
        state = scope.steps[step_id]
        if field == "exit_code":
            return None if state.exit_code is None else float(state.exit_code)
        return state.status if field == "status" else state.output

    return fact


def _status_function(name: str) -> Node:
    return lambda scope: name == "always" or (scope.success if name == "success" else scope.failure)


def _or(left: Node, right: Node) -> Node:
    return lambda scope: left(scope) or right(scope)


def _and(left: Node, right: Node) -> Node:
    return lambda scope: left(scope) and right(scope)


def _not(node: Node, negate: bool) -> Node:
    return lambda scope: bool(node(scope)) is not negate


def _compare(sign: str, left: Node, right: Node) -> Node:
    def compared(scope: Scope) -> Value:
        return _compare_values(sign, left(scope), right(scope))

    return compared


def _compare_values(sign: str, left: Value, right: Value) -> bool:
    ordered = sign not in ("==", "!=")
    if ordered or isinstance(left, float) or isinstance(right, float):
        first, second = _to_number(left), _to_number(right)
        if first is None or second is None:
            return sign == "!="
        order = (first > second) - (first < second)
        return {"==": order == 0, "!=": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[
            sign
        ]
    return (format_value(left) == format_value(right)) is (sign == "==")


def _to_number(value: Value) -> float | None:
    if isinstance(value, float):
        return value
    try:
        return float(value) if isinstance(value, str) and len(value) < 100 else None
    except ValueError:
        return None
