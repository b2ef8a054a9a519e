"""
A function by reference, so that another process can load it: `module:function` or `/path/to/file.py:function`.

A file that is part of a package (its folder has an `__init__.py`) is imported as a module of that package, so its
relative imports work. Any other file is loaded by itself; it can import the files beside it.
"""

from __future__ import annotations

import os

from taskyard.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_FORM = "module:function or /path/to/file.py:function"


def check_reference(field: str, reference: object, *, folder: str = "") -> str:
    """The reference, with a path made absolute: `~` is the home folder, a relative path starts at `folder`.

    Raises:
        BadValue: it has another form.
    """
    module, _, name = reference.rpartition(":") if isinstance(reference, str) else ("", "", "")
    if not module or not all(part.isidentifier() for part in name.split(".")):
        raise BadValue(field, reference, _FORM)
    if module.endswith(".py"):
        return f"{os.path.join(folder, os.path.expanduser(module))}:{name}"
    if not all(part.isidentifier() for part in module.split(".")):
        raise BadValue(field, reference, _FORM)
    return f"{module}:{name}"


def reference_to(field: str, function: Callable[..., object]) -> str:
    """The reference by which another process loads `function`.

    Raises:
        BadValue: no other process can: it is a lambda, a method of an object, inside another function, or in the
            program that runs.
    """
    import sys

    module = sys.modules.get(str(getattr(function, "__module__", None)))
    name = str(getattr(function, "__qualname__", ""))
    if module is None or module.__name__ == "__main__" or _attribute(module, name) is not function:
        raise BadValue(
            field,
            function,
            "a function at the top level of a module, not of the program itself: each job loads it in its own process",
        )
    path = getattr(module, "__file__", None)
    if isinstance(path, str) and path.endswith(".py") and os.path.isfile(path):
        return f"{os.path.abspath(path)}:{name}"
    return f"{module.__name__}:{name}"


def load(field: str, reference: str) -> Callable[..., object]:
    """The function that a reference names.

    Raises:
        BadValue: there is none, or it cannot be called. Whatever else its module raises is passed on.
    """
    from importlib import import_module

    module, _, name = reference.rpartition(":")
    loaded = _from_file(module) if module.endswith(".py") else import_module(module)
    found = _attribute(loaded, name)
    if not callable(found):
        raise BadValue(field, reference, f"the name of a function in {module}")
    return found


def _attribute(module: ModuleType, name: str) -> object:
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _from_file(path: str) -> ModuleType:
    import sys
    from importlib import import_module
    from importlib.util import module_from_spec, spec_from_file_location

    folder, file = os.path.split(path)
    parts = [file.removesuffix(".py")]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    if folder not in sys.path:
        sys.path.append(folder)  # behind everything else: it hides no module
    if len(parts) > 1:
        return import_module(".".join(parts).removesuffix(".__init__"))
    name = f"_taskyard_{parts[0]}"  # another name than the file's own, which may be a module of somebody else's
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
