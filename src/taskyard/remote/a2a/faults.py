"""What went wrong with an agent elsewhere, in our words: it is away, or it will not. The token is in none of them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import httpx
from a2a.client.errors import A2AClientError, A2AClientTimeoutError
from a2a.utils.errors import A2AError, InternalError
from google.protobuf.json_format import ParseError

from taskyard.errors import RemoteAway, RemoteRefused
from taskyard.remote.a2a.home import TooLarge, origin_of
from taskyard.shapes import as_object

#: In the data of an error: it may go well later.
RETRYABLE = "retryable"

#: Answers that say "not now".
_LATER = frozenset({408, 425, 429})

#: What is raised by answers that are not what they should be.
_STRANGE = (ParseError, ValueError, TypeError, AttributeError, KeyError, RecursionError)


class Faults:
    """Tells them, for one agent."""

    def __init__(self, remote: str, token: str) -> None:
        self._remote = remote
        self._token = token

    @contextmanager
    def told(self, *, asks: bool = False) -> Generator[None]:
        """Raise what goes wrong inside as ours.

        Args:
            asks: It only asks, or may be repeated: an agent's inner trouble is no last word.
        """
        try:
            yield
        except A2AClientTimeoutError as error:
            raise RemoteAway(self._remote, "it does not answer in time") from error
        except A2AClientError as error:
            raise self._by_cause(error) from None  # it may repeat what it was sent
        except A2AError as error:
            raise self._said(error, asks=asks) from None  # the same
        except httpx.HTTPError as error:
            raise RemoteAway(self._remote, self._clean(error)) from error
        except TooLarge as error:
            raise self.refused(f"its answer has more than {error.most:,} bytes") from error
        except _STRANGE as error:
            raise self.refused(f"its answer cannot be understood ({type(error).__name__})") from error

    def refused(self, why: str, advice: str = "") -> RemoteRefused:
        """It was reached, and will not."""
        return RemoteRefused(self._remote, why, advice)

    def _by_cause(self, error: A2AClientError) -> RemoteAway | RemoteRefused:
        cause = error.__cause__
        if isinstance(cause, httpx.HTTPStatusError):
            return self._by_status(cause.response)
        if isinstance(cause, httpx.HTTPError):
            return RemoteAway(self._remote, self._clean(cause))
        return self.refused("its answer cannot be understood", "Is an A2A agent at that address?")

    def _by_status(self, response: httpx.Response) -> RemoteAway | RemoteRefused:
        status = response.status_code
        if status in _LATER or status >= 500:
            return RemoteAway(self._remote, f"it answers with HTTP {status}")
        if status in (401, 403):
            why = "it does not take the token" if self._token else "it wants a token"
            return self.refused(f"{why} (HTTP {status})", f"See token_env in [remotes.{self._remote}].")
        if response.is_redirect:
            where = origin_of(response.headers.get("location", "")) or "another path"
            return self.refused(f"it points to {where}, and redirects are not followed", "Set url to where it is.")
        return self.refused(f"it answers with HTTP {status}", "Is an A2A agent at that address?")

    def _said(self, error: A2AError, *, asks: bool) -> RemoteAway | RemoteRefused:
        """What the agent itself answered."""
        why = self._clean(error)
        more = as_object(error.data) or {}  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        if str(more.get(RETRYABLE)).lower() == "true" or (asks and type(error) is InternalError):
            return RemoteAway(self._remote, why)
        return self.refused(why)

    def _clean(self, error: Exception) -> str:
        text = str(error) or type(error).__name__
        return (text.replace(self._token, "…") if self._token else text).strip().rstrip(".")
