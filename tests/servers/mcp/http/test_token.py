"""The secret that every request over HTTP must bring."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from taskyard.errors import BadText, StorageError
from taskyard.servers.http.access import Token
from taskyard.servers.mcp import sdk_server as tokens

SECRET = "a-secret-of-my-own-0123456789"


def test_it_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    made = tokens.find_token(str(tmp_path / "home"), env={})
    file = Path(made.file or "")
    assert file == tmp_path / "home" / "mcp-token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert tokens.find_token(str(tmp_path / "home"), env={}) == made
    assert tokens.find_token(str(tmp_path / "other"), env={}).text != made.text


def test_it_fits_itself_alone_and_does_not_show() -> None:
    made = Token(SECRET, None)
    assert made.fits(SECRET)
    for other in ("", SECRET[:-1], SECRET + "x", SECRET.upper(), "\udcff", "é"):
        assert not made.fits(other)
    assert SECRET not in f"{made} {made!r}"


def test_a_file_that_was_named_goes_before_the_environment_which_keeps_none_of_it(tmp_path: Path) -> None:
    env = {tokens.TOKEN_VARIABLE: SECRET}
    named = tokens.find_token(str(tmp_path), str(tmp_path / "mine"), env)
    assert named.file == str(tmp_path / "mine")
    assert named.text != SECRET
    assert env == {}
    assert tokens.find_token(str(tmp_path), env={tokens.TOKEN_VARIABLE: f" {SECRET}\n"}) == (SECRET, None)


@pytest.mark.parametrize("text", ["", "feeble", "with a space in it 012345", "é" * 20, "x" * 15])
def test_what_can_be_guessed_or_cannot_be_sent_is_refused_without_repeating_it(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    for named, env in ((str(file), {}), (None, {tokens.TOKEN_VARIABLE: text})):
        with pytest.raises(BadText) as caught:
            tokens.find_token(str(tmp_path), named, env)
        assert not text or text not in str(caught.value)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_a_file_that_others_can_read_is_no_place_for_it(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "token"
    file.write_text(SECRET, encoding="ascii")
    file.chmod(mode)
    with pytest.raises(StorageError, match="chmod 600"):
        tokens.find_token(str(tmp_path), str(file), {})


def test_a_planted_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text(SECRET, encoding="ascii")
    theirs.chmod(0o600)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "mcp-token").symlink_to(theirs)
    with pytest.raises(StorageError):
        tokens.find_token(str(home), env={})
