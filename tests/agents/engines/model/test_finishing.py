"""Whether an answer of a model is whole."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel as TrialModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers.openai import OpenAIProvider

from taskyard.agents.engines.model_loop import fault_in


def openai() -> OpenAIChatModel:
    return OpenAIChatModel("gpt-4o", provider=OpenAIProvider(api_key="k", base_url="http://127.0.0.1:1/v1"))


def answer(**fields: Any) -> ModelResponse:
    return ModelResponse(parts=[TextPart("Half")], **fields)


@pytest.mark.req("B-08")
@pytest.mark.parametrize("made", [openai, lambda: WrapperModel(openai()), lambda: FallbackModel(openai(), openai())])
def test_an_answer_that_does_not_say_why_it_ended_was_cut(made: Any) -> None:
    model: Model = made()
    cut = fault_in(answer(finish_reason="stop"), model)
    assert cut is not None
    assert (cut.text, cut.is_retryable) == ("Half", True)
    assert fault_in(answer(finish_reason="stop", provider_details={"finish_reason": "stop"}), model) is None


@pytest.mark.req("B-08")
def test_models_that_never_say_why_are_believed() -> None:
    assert fault_in(answer(), TrialModel()) is None
    assert fault_in(answer(), FallbackModel(openai(), TrialModel())) is None


@pytest.mark.req("B-08")
@pytest.mark.parametrize("fields", [{"state": "interrupted"}, {"state": "incomplete"}, {"finish_reason": "error"}])
def test_an_answer_that_was_interrupted_is_none(fields: dict[str, Any]) -> None:
    cut = fault_in(answer(**fields), TrialModel())
    assert cut is not None
    assert cut.is_retryable
