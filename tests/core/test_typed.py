"""Our named tuples are what `typing` would have made."""

from __future__ import annotations

import pickle
import typing

import pytest

from taskyard.core.values import NamedTuple, cast


class Ours(NamedTuple):
    """A record."""

    name: str
    size: int = 3

    @property
    def shout(self) -> str:
        return self.name.upper()

    def twice(self) -> Ours:
        return self._replace(size=self.size * 2)


class Theirs(typing.NamedTuple):
    name: str
    size: int = 3


@pytest.mark.req("T-05")
def test_a_record_has_fields_defaults_methods_and_a_place() -> None:
    found = Ours("a")

    assert (found, found.shout, found.twice()) == (("a", 3), "A", ("a", 6))
    assert Ours.__doc__ == "A record." and Ours.__module__ == __name__ and Ours.__qualname__ == "Ours"
    assert Ours._fields == Theirs._fields and Ours._field_defaults == Theirs._field_defaults
    assert repr(found) == "Ours(name='a', size=3)"
    assert pickle.loads(pickle.dumps(found)) == found
    assert not hasattr(found, "__dict__")


@pytest.mark.req("T-05")
def test_a_field_without_a_default_behind_one_with_it_is_refused() -> None:
    with pytest.raises(TypeError, match="default"):
        exec("class Bad(NamedTuple):\n    a: int = 1\n    b: int\n", {"NamedTuple": NamedTuple, "__name__": "x"})


@pytest.mark.req("T-05")
def test_a_cast_changes_nothing() -> None:
    value = object()

    assert cast("int", value) is value
