"""How Taskyard was installed, and the command that adds an extra to this very installation."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.metadata import Distribution

NAME = "taskyard"


def command_for_extra(extra: str) -> str:
    """The command that adds an extra of ours here: where the package came from, by the tool that installed it."""
    found = _distribution()
    origin = _origin(found)
    if _has("pipx_metadata.json"):
        return f"pipx inject {NAME} {' '.join(map(_quoted, _needed(found, extra)))}"
    source, editable = _source(origin, extra)
    if _has("uv-receipt.toml"):
        return f"uv tool install --force {'--editable ' if editable else ''}{source}"
    if _is_uvx():
        return f"uvx --from {source} {NAME}"
    return f"{_pip()} install {'-e ' if editable else ''}{source}"


def command_for(requirement: str) -> str:
    """The command that adds somebody else's package here."""
    if _has("pipx_metadata.json"):
        return f"pipx inject {NAME} {_quoted(requirement)}"
    if _has("uv-receipt.toml"):
        return f"uv tool install --force {NAME} --with {_quoted(requirement)}"
    return f"{_pip()} install {_quoted(requirement)}"


def _distribution() -> Distribution | None:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return distribution(NAME)
    except PackageNotFoundError:
        return None  # run from a source tree or an archive


def _origin(found: Distribution | None) -> Mapping[str, object] | None:
    """What `direct_url.json` says (PEP 610); of a source tree that is not installed, the same; None: an index."""
    if found is None:
        folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
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
    """What to install, quoted for a shell, and whether it is an editable folder."""
    if origin is None:
        return _quoted(f"{NAME}[{extra}]"), False
    url = str(origin["url"])
    folder = _object(origin.get("dir_info"))
    if url.startswith("file://") and folder is not None:
        from urllib.parse import unquote

        return _quoted(f"{unquote(url[len('file://') :])}[{extra}]"), bool(folder.get("editable"))
    vcs = _object(origin.get("vcs_info"))
    if vcs is not None:
        revision = vcs.get("requested_revision")
        url = f"{vcs.get('vcs', 'git')}+{url}{f'@{revision}' if revision else ''}"
    return _quoted(f"{NAME}[{extra}] @ {url}"), False


def _needed(found: Distribution | None, extra: str) -> list[str]:
    """The requirements of an extra; the extra itself if they are not known."""
    requires = (found.requires if found is not None else None) or []
    marks = (f'extra == "{extra}"', f"extra == '{extra}'")
    names = [line.partition(";")[0].strip() for line in requires if line.partition(";")[2].strip() in marks]
    return names or [f"{NAME}[{extra}]"]


def _has(name: str) -> bool:
    return os.path.isfile(os.path.join(sys.prefix, name))


def _is_uvx() -> bool:
    return "/archive-v0/" in f"{sys.prefix}/" or "/environments-v2/" in f"{sys.prefix}/"


def _pip() -> str:
    """How pip is called; environments made by uv have none."""
    from importlib.util import find_spec

    if find_spec("pip") is None:
        try:
            with open(os.path.join(sys.prefix, "pyvenv.cfg"), encoding="utf-8") as file:
                if any(line.partition("=")[0].strip() == "uv" for line in file):
                    return "uv pip"
        except OSError:
            pass  # no virtual environment
    return "pip"


def _quoted(word: str) -> str:
    from shlex import quote

    return quote(word)
