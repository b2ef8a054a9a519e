"""The page's own files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from support.web import Web, with_web
from taskyard.errors import Damaged
from taskyard.ui.web import assets


def page(folder: Path, **more: str) -> dict[str, assets.Asset]:
    (folder / "js").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>t</title>", encoding="utf-8")
    (folder / "js" / "app.js").write_text("export {};", encoding="utf-8")
    (folder / "secret.txt").write_text("not listed", encoding="utf-8")
    names = {name: digest for name, digest in assets.compute_manifest(str(folder)).items() if name != "secret.txt"}
    (folder / assets.MANIFEST).write_text(json.dumps({**names, **more}), encoding="utf-8")
    return assets.load_assets(str(folder))


def test_the_manifest_says_what_every_file_of_the_page_is() -> None:
    folder = assets.static_folder()
    assert dict(assets.read_manifest(folder)) == assets.compute_manifest(folder), "run scripts/assets.py"


@pytest.mark.req("U-04")
def test_files_that_are_listed_are_served_and_asked_for_once(tmp_path: Path) -> None:
    found = page(tmp_path)

    async def body(web: Web) -> None:
        index = await web.ask("GET", "/", token=None)
        assert (index.status, index.headers["content-type"]) == (200, "text/html; charset=utf-8")
        script = await web.ask("GET", "/static/js/app.js", token=None)
        assert script.body == b"export {};"
        assert script.headers["content-type"].startswith("text/javascript")
        assert script.headers["cache-control"] == "no-cache"
        again = await web.get("/static/js/app.js", If_None_Match=f'"x", {script.headers["etag"]}')
        assert (again.status, again.body) == (304, b"")

    with_web(body, assets=found)


@pytest.mark.req("U-04")
def test_nothing_else_is_however_it_is_asked_for(tmp_path: Path) -> None:
    found = page(tmp_path)

    async def body(web: Web) -> None:
        for name in (
            "secret.txt", "manifest.json", "js", "js/", "../app.py", "..%2fapp.py", "js/../secret.txt", "%2e%2e/app.py",
            "/etc/passwd", "js%00/app.js", "JS/app.js", "js//app.js", "js\\app.js",
        ):  # fmt: skip
            got = await web.get(f"/static/{name}")
            assert got.status == 404, name

    with_web(body, assets=found)


@pytest.mark.parametrize("name", ["../x.js", "/x.js", ".x.js", "a/../x.js", "a\\x.js", ""])
def test_a_manifest_that_leads_out_of_its_folder_is_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(Damaged):
        page(tmp_path / "page", **{name: "0"})


def test_a_file_is_told_by_its_hash(tmp_path: Path) -> None:
    found = page(tmp_path)["index.html"]
    assert found.sha256 == hashlib.sha256((tmp_path / "index.html").read_bytes()).hexdigest()
    (tmp_path / "index.html").unlink()
    with pytest.raises(Damaged, match="it is not there"):
        assets.load_assets(str(tmp_path))
