"""
`NamedTuple` and `cast` as `typing` has them, at a fraction of the cost.

Importing `typing` takes a third of the time in which `python -c pass` starts, and each of its named
tuples compiles the annotation of every field. A command line that starts on every tool call of an
agent defines about twenty records first. Type checkers see the originals.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
    from typing import cast as cast
else:
    from collections import namedtuple

    _MADE = frozenset(["__annotations__", "__module__", "__qualname__", "__new__", "__slots__"])

    class _Record(type):
        """Turns a class of annotated fields into a named tuple, methods and all."""

        def __new__(meta, name, bases, body):
            """The class itself, or the named tuple that a class derived from it describes."""
            if not bases:
                return super().__new__(meta, name, bases, body)
            fields = body["__annotations__"]
            defaults = [body[field] for field in fields if field in body]
            if defaults and list(fields)[-len(defaults) :] != [field for field in fields if field in body]:
                raise TypeError(f"{name}: a field without a default follows one that has it")
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            made.__annotations__ = dict(fields)
            made.__qualname__ = body["__qualname__"]
            for key, value in body.items():
                if key not in _MADE and key not in fields:
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Record):
        """The base of records: immutable, cheap to make by the thousand."""

    def cast(kind, value):
        """`value`, which a type checker may take for a `kind`."""
        return value
