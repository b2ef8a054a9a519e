"""Nobody looks for garbage while libraries are loaded, and afterwards all is as before."""

from __future__ import annotations

import gc

import pytest

from support.python import run_python
from taskyard.core.installation import GcPause


def test_garbage_is_looked_for_again_also_after_what_could_not_be_loaded() -> None:
    with pytest.raises(ModuleNotFoundError), GcPause():
        assert not gc.isenabled()
        raise ModuleNotFoundError
    assert gc.isenabled()


def test_whoever_looks_for_none_goes_on_so() -> None:
    gc.disable()
    try:
        with GcPause():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("how", [(), ("--http", "0")], ids=["stdio", "http"])
def test_a_server_loads_that_way(how: tuple[str, ...]) -> None:
    said = run_python(
        """
        import gc, os, sys
        from taskyard.cli.main import main
        asked, client = os.pipe()
        os.write(client, b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}\\n')  # what needs the library
        os.dup2(asked, 0)
        class Look:
            def find_spec(self, name, path=None, target=None):
                if name == "mcp.server":  # `mcp` itself is only looked for before
                    print(gc.isenabled(), flush=True)
                    sys.exit()
        sys.meta_path.insert(0, Look())
        main(["mcp", *sys.argv[1:]])
        """,
        *how,
    )
    assert said == "False\n"
