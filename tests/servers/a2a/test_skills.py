from __future__ import annotations

import os
from pathlib import Path

import pytest

from taskyard.errors import BadValue, UsageError
from taskyard.servers.a2a.server import build_card
from taskyard.servers.a2a.skills import Skill, load_card_texts, load_skills


@pytest.fixture
def config() -> Path:
    folder = Path(os.environ["XDG_CONFIG_HOME"]) / "taskyard"
    folder.mkdir(parents=True)
    return folder / "config.toml"


def test_a_table_is_a_skill_and_its_agent_is_as_the_person_said(config: Path, tmp_path: Path) -> None:
    config.write_text(
        f"""
        [a2a]
        name = "Ada's"
        [a2a.skills.review]
        description = "Reviews"
        command = "cat '{{prompt}}'"
        cwd = "{tmp_path}"
        timeout = 60
        max_tokens = 100
        tags = ["code"]
        [a2a.skills.other]
        command = "true"
        """,
        encoding="utf-8",
    )
    assert load_card_texts() == {"name": "Ada's"}
    assert list(load_skills()) == ["review", "other"]
    review = load_skills(names=["review"])["review"]
    agent = review.agent("Look")
    assert (agent.prompt, agent.command, agent.cwd, agent.timeout) == ("Look", ("cat", "{prompt}"), str(tmp_path), 60)
    assert (agent.max_tokens, agent.on_parent_exit, review.transcript) == (100, "keep", False)


@pytest.mark.parametrize(
    "table",
    [
        "a2a = 3",
        "[a2a]\nskills = 3",
        "[a2a.skills]\nreview = 3",
        "[a2a.skills.review]\ncomand = 'x'",
        "[a2a.skills.review]\ncommand = 3",
        '[a2a.skills.review]\ncommand = "\'"',
        "[a2a.skills.review]\ncommand = 'x'\ntranscript = 'yes'",
        "[a2a.skills.review]\ncommand = 'x'\ntimeout = 'long'",
        "[a2a.skills.review]\ncommand = 'x'\ncwd = '/nowhere/at/all'",
        "[a2a.skills.review]\nengine = 'nothing'",
        "[a2a.skills.review]\nengine = 'command'",
        "[a2a.skills.review]\ncommand = 'x'\ntags = ['']",
    ],
)
def test_a_skill_that_could_not_work_is_refused_before_anybody_asks(config: Path, table: str) -> None:
    config.write_text(table, encoding="utf-8")

    with pytest.raises(Exception) as raised:
        load_skills()
    assert getattr(raised.value, "exit_code", None) in (2, 4), raised.value


def test_without_tables_or_options_there_is_the_usual_agent_if_it_has_a_program(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="--command"):
        load_skills()
    monkeypatch.setenv("TASKYARD_AGENT_COMMAND", "cat")
    assert list(load_skills()) == ["agent"]
    with pytest.raises(BadValue, match="agent"):
        load_skills(names=["nobody"])


def test_an_unknown_word_about_the_whole_is_refused(config: Path) -> None:
    config.write_text("[a2a]\nnmae = 'x'", encoding="utf-8")
    with pytest.raises(BadValue, match="nmae"):
        load_card_texts()


def test_a_card_names_both_ways_in_below_its_address() -> None:
    card = build_card([Skill("x", command=("secret-program",))], "https://x.example/", name="n", description="d")

    assert [way.url for way in card.supported_interfaces] == ["https://x.example/rpc", "https://x.example/rest"]
    assert "secret-program" not in str(card)
