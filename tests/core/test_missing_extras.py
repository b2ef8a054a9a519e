"""Each extra brings everything that its commands import."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import metadata

import pytest
from packaging.requirements import Requirement

from support.repo import ROOT

#: The modules that the commands of an extra load, by extra.
MODULES = {
    "mcp": "cli.server servers.mcp servers.http jobs.kinds.mcp_source jobs.kinds.monitor",
    "web": "cli.server ui ui.web servers.http ui.live",
    "tui": "cli.server ui ui.tui ui.live",
    "agents": "agents.engines agents.agent",
    "remote": "cli.server cli.agent servers.a2a jobs.remote jobs.kinds.remote_agent servers.http",
    "keyring": "jobs.remote.remotes",
    "postgres": "postgres postgres.relay cli.admin yard",
    "workflows": "jobs.workflow jobs.kinds.workflow cli.workflow",
    "otel": "",
}

#: What a module needs of another extra on purpose, and says so by MissingExtra.
ELSEWHERE = {"taskyard.servers.mcp.traces": "otel", "taskyard.jobs.remote.remotes": "keyring"}

LOAD = """
import importlib, pkgutil, sys
absent, wanted, but = (set(part.split(",")) for part in sys.argv[1:4])
class Absent:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in absent:
            raise ModuleNotFoundError(f"No module named {top!r}", name=top)
sys.meta_path.insert(0, Absent())
for name in sorted(wanted):
    module = importlib.import_module(name)
    inside = [found.name for found in pkgutil.iter_modules(getattr(module, "__path__", []), f"{name}.")]
    for inner in [one for one in inside if one not in but and not one.endswith("__main__")]:
        importlib.import_module(inner)
"""


def extras() -> dict[str, list[str]]:
    found: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    return found


def brought(extra: str) -> set[str]:
    """The names of all packages that an extra installs, theirs included."""
    found: set[str] = set()
    waiting = [(extras()[extra], "")]
    while waiting:
        requirements, inside = waiting.pop()
        for needed in map(Requirement, requirements):
            if needed.marker is not None and not needed.marker.evaluate({"extra": inside}):
                continue
            for chosen in needed.extras or {""}:
                key = f"{needed.name.lower()}[{chosen}]"
                if key not in found:
                    found.add(key)
                    waiting.append((metadata.requires(needed.name) or [], chosen))
    return {key.partition("[")[0].replace("_", "-") for key in found}


def others(packages: set[str]) -> set[str]:
    """The modules that are installed here and come with none of these packages."""
    names = metadata.packages_distributions().items()
    here = {module for module, owners in names if {owner.lower().replace("_", "-") for owner in owners} & packages}
    return {module for module, _ in names} - here - {"taskyard"}


def test_every_extra_is_in_the_table() -> None:
    assert set(extras()) == set(MODULES)


@pytest.mark.parametrize("extra", [extra for extra, modules in MODULES.items() if modules])
def test_what_an_extra_installs_is_all_that_its_commands_import(extra: str) -> None:
    wanted = [f"taskyard.{name}" for name in MODULES[extra].split()]
    exclude = [name for name, other in ELSEWHERE.items() if other != extra]
    words = [sys.executable, "-c", LOAD, ",".join(sorted(others(brought(extra)))), ",".join(wanted), ",".join(exclude)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
