"""The model an agent shall use, among those it offers."""

from __future__ import annotations

from typing import Literal

import pytest
from acp.schema import SessionConfigOptionSelect, SessionConfigSelectGroup, SessionConfigSelectOption

from taskyard.agents.engines.acp_session import choose_model


def setting(category: Literal["mode", "model"], *names: str) -> SessionConfigOptionSelect:
    options = [SessionConfigSelectOption(value=name, name=name.title()) for name in names]
    return SessionConfigOptionSelect(
        id=f"the-{category}", name="x", category=category, type="select", current_value=names[0], options=options
    )


@pytest.mark.req("K-02")
def test_a_model_is_found_by_its_id_or_name_alone_or_in_groups() -> None:
    settings = [setting("mode", "large"), setting("model", "small", "large")]
    assert choose_model("large", settings) == ("the-model", "large", "")
    assert choose_model("Small", settings).value == "small"

    grouped = setting("model", "small")
    grouped.options = [SessionConfigSelectGroup(group="g", name="G", options=settings[1].options)]  # type: ignore[arg-type]
    assert choose_model("LARGE", [grouped]).value == "large"


@pytest.mark.req("K-02")
def test_one_that_is_not_there_is_refused_with_those_that_are() -> None:
    assert choose_model("huge", [setting("model", "small", "large")]).error == (
        "it has no model 'huge': it offers small, large"
    )
    assert choose_model("huge", []).error == "it has no model 'huge': it offers no choice of models"
