"""Whether an answer of a model is whole."""

from __future__ import annotations

from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel

from taskyard.engines.engine import Said

#: Models of these modules, and those made from them, say why they ended. A stream that ends without that was cut.
_SAY_WHY = tuple(
    f"pydantic_ai.models.{name}" for name in ("openai", "anthropic", "google", "groq", "mistral", "bedrock")
)


def fault_in(response: ModelResponse, model: Model) -> Said | None:
    """What is wrong with an answer, as the last word on it; None if it is whole."""
    text = response.text or ""
    if response.finish_reason == "length":
        return Said(text, "its answer was cut at the most tokens the model gives in one")
    if response.finish_reason == "content_filter":
        return Said(text, "its answer was held back by a filter of the provider")
    if response.finish_reason == "error" or response.state != "complete" or _is_cut(response, model):
        return Said(text, "its answer broke off in the middle", is_retryable=True)
    return None


def _is_cut(response: ModelResponse, model: Model) -> bool:
    return _says_why(model) and not (response.provider_details or {}).get("finish_reason")


def _says_why(model: Model) -> bool:
    """Whether a model, or every one of those that it is made of, says why an answer ended."""
    if isinstance(model, FallbackModel):
        return all(_says_why(inner) for inner in model.models)
    if isinstance(model, WrapperModel):
        return _says_why(model.wrapped)
    return any(base.__module__.startswith(_SAY_WHY) for base in type(model).__mro__)
