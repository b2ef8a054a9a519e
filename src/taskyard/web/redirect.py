"""
A file that leads a browser to the page: what is given to the browser's command line, which other users can read, is the
file's path, and the address with the token stands in the file, which they cannot.
"""

from __future__ import annotations

import html
import os
import urllib.request

from taskyard.disk import files

_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>Taskyard</title>
<a href="{url}">Open the page</a>
"""


def redirect_file(home: str, url: str) -> str:
    """Write the file for this process, readable by its owner alone; its address.

    Raises:
        StorageError: it cannot be written.
    """
    path = _path(home)
    files.replace(path, _PAGE.format(url=html.escape(url)).encode())
    return f"file://{urllib.request.pathname2url(path)}"


def remove(home: str) -> None:
    """Take the file away: the server has ended."""
    files.remove(_path(home))


def _path(home: str) -> str:
    return os.path.join(os.path.abspath(home), f"web-open-{os.getpid()}.html")
