"""How Taskyard was installed, commands that add packages to it, and a pause of garbage collection."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.metadata import Distribution


NAME = "taskyard"


def extra_install_command(extra: str) -> str:
    """Return the command that adds one of our extras, by the tool and source that installed the package."""
    found = _distribution()
    origin = _origin(found)
    if _has_prefix_file("pipx_metadata.json"):
        return f"pipx inject {NAME} {' '.join(map(_quote, _extra_requirements(found, extra)))}"
    source, editable = _source(origin, extra)
    if _has_prefix_file("uv-receipt.toml"):
        return f"uv tool install --force {'--editable ' if editable else ''}{source}"
    if _is_uvx():
        return f"uvx --from {source} {NAME}"
    return f"{_pip()} install {'-e ' if editable else ''}{source}"


def install_command(requirement: str) -> str:
    """Return the command that adds a third-party package here."""
    if _has_prefix_file("pipx_metadata.json"):
        return f"pipx inject {NAME} {_quote(requirement)}"
    if _has_prefix_file("uv-receipt.toml"):
        return f"uv tool install --force {NAME} --with {_quote(requirement)}"
    return f"{_pip()} install {_quote(requirement)}"


def _distribution() -> Distribution | None:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return distribution(NAME)
    except PackageNotFoundError:
        return None  # run from a source tree or an archive


def _origin(found: Distribution | None) -> Mapping[str, object] | None:
    """Return `direct_url.json` (PEP 610), or its equivalent for an uninstalled source tree; None: from an index."""
    if found is None:
        folder = os.path.abspath(os.path.join(__file__, *[os.pardir] * 4))
        is_tree = os.path.isfile(os.path.join(folder, "pyproject.toml"))
        return {"url": f"file://{folder}", "dir_info": {}} if is_tree else None
    import json

    try:
        said = _object(json.loads(found.read_text("direct_url.json") or "null"))
    except ValueError:
        return None
    return said if said is not None and isinstance(said.get("url"), str) else None


def _object(value: object) -> Mapping[str, object] | None:
    from typing import cast

    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def _source(origin: Mapping[str, object] | None, extra: str) -> tuple[str, bool]:
    """Return what to install, quoted for a shell, and whether it is an editable folder."""
    if origin is None:
        return _quote(f"{NAME}[{extra}]"), False
    url = str(origin["url"])
    folder = _object(origin.get("dir_info"))
    if url.startswith("file://") and folder is not None:
        from urllib.parse import unquote

        return _quote(f"{unquote(url[len('file://') :])}[{extra}]"), bool(folder.get("editable"))
    vcs = _object(origin.get("vcs_info"))
    if vcs is not None:
        revision = vcs.get("requested_revision")
        url = f"{vcs.get('vcs', 'git')}+{url}{f'@{revision}' if revision else ''}"
    return _quote(f"{NAME}[{extra}] @ {url}"), False


def _extra_requirements(found: Distribution | None, extra: str) -> list[str]:
    """Return the requirements of an extra; the extra itself if they are unknown."""
    requires = (found.requires if found is not None else None) or []
    marks = (f'extra == "{extra}"', f"extra == '{extra}'")
    names = [line.partition(";")[0].strip() for line in requires if line.partition(";")[2].strip() in marks]
    return names or [f"{NAME}[{extra}]"]


def _has_prefix_file(name: str) -> bool:
    return os.path.isfile(os.path.join(sys.prefix, name))


def _is_uvx() -> bool:
    return "/archive-v0/" in f"{sys.prefix}/" or "/environments-v2/" in f"{sys.prefix}/"


def _pip() -> str:
    """Return the pip command; environments made by uv have none."""
    from importlib.util import find_spec

    if find_spec("pip") is None:
        try:
            with open(os.path.join(sys.prefix, "pyvenv.cfg"), encoding="utf-8") as file:
                if any(line.partition("=")[0].strip() == "uv" for line in file):
                    return "uv pip"
        except OSError:
            pass  # not a virtual environment
    return "pip"


def _quote(word: str) -> str:
    from shlex import quote

    return quote(word)


class GcPause:
    """Disable garbage collection during a `with` block: imports allocate much, and none of it is garbage.

    with GcPause():
        from taskyard.servers.mcp import server
    """

    def __enter__(self) -> None:
        self._was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_on:
            gc.enable()
