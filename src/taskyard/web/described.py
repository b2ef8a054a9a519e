"""The API, described: OpenAPI 3.1 for programs, a page for people; both made from the table of routes."""

from __future__ import annotations

import functools
from html import escape

from starlette.requests import Request
from starlette.responses import Response

from taskyard.web.answers import JSON, dumped
from taskyard.web.site import Site
from taskyard.web.values import Given

_CACHED = {"Cache-Control": "no-cache"}

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 0 auto; padding: 1rem; }
h2 { font: 600 1rem/1.5 ui-monospace, monospace; border-top: 1px solid; padding-top: 1rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: .1rem 1rem .1rem 0; font-weight: normal; }
code, th { font-family: ui-monospace, monospace; }
"""


async def openapi(site: Site, given: Given, request: Request) -> Response:
    """The description, for programs."""
    return Response(_document(), media_type=JSON, headers=_CACHED)


async def docs(site: Site, given: Given, request: Request) -> Response:
    """The description, for people."""
    return Response(_page(), media_type="text/html", headers=_CACHED)


async def style(site: Site, given: Given, request: Request) -> Response:
    """How that looks."""
    return Response(STYLE, media_type="text/css", headers=_CACHED)


@functools.cache
def _document() -> bytes:
    from taskyard.web.openapi import document

    return dumped(document())


@functools.cache
def _page() -> str:
    from taskyard.web.routes import ROUTES

    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>taskyard: API</title>'
        '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/docs.css"></head><body>'
        "<main><h1>The API of this page</h1><p>The same for programs: <a href='/openapi.json'>openapi.json</a>. Every "
        "address but those of the page itself wants <code>Authorization: Bearer</code> with the token in the address "
        "that <code>taskyard web</code> prints.</p>"
    ]
    for route in ROUTES:
        parts.append(f"<section><h2>{route.method} {escape(route.path)}</h2><p>{escape(route.about)}</p>")
        values = [*route.inside, *route.query, *route.body]
        if values:
            rows = (f"<tr><th scope='row'>{escape(one.name)}</th><td>{escape(one.about)}</td></tr>" for one in values)
            parts.append(f"<table>{''.join(rows)}</table>")
        parts.append("</section>")
    return "".join([*parts, "</main></body></html>"])
