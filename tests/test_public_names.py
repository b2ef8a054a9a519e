"""What `import taskyard` offers: every public name by its short path, found by `dir`, loaded when asked for."""

from __future__ import annotations

import re

import pytest

import taskyard
from support.python import run_python
from support.repo import ROOT
from taskyard import errors

MODULES = ("config", "errors", "model_context", "teammate", "testing")


def documented_errors() -> list[str]:
    page = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `\w+` \| `(\w+)` \|", page, re.MULTILINE)


def test_every_documented_error_is_a_public_name() -> None:
    assert len(documented_errors()) > 20
    for name in documented_errors():
        assert name in taskyard.__all__
        assert getattr(taskyard, name) is getattr(errors, name)


def test_every_public_name_is_there_and_shown() -> None:
    assert set(dir(taskyard)) == {*taskyard.__all__, *MODULES}
    for name in dir(taskyard):
        assert getattr(taskyard, name) is not None


@pytest.mark.parametrize("module", MODULES)
def test_a_public_module_is_reached_without_importing_it_by_name(module: str) -> None:
    program = f"import sys, taskyard; before = '{module}' in vars(taskyard); taskyard.{module}; print(before)"

    assert run_python(program).strip() == "False"


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nope"):
        taskyard.nope  # noqa: B018


def test_no_submodule_hides_a_public_function() -> None:
    program = """
        import importlib, pkgutil, types
        from taskyard import teammate
        for found in pkgutil.iter_modules(teammate.__path__, "taskyard.agents.teammate."):
            importlib.import_module(found.name)
        print([one for one in teammate.__all__ if isinstance(getattr(teammate, one), types.ModuleType)])
    """

    assert run_python(program).strip() == "[]"
