"""What went wrong at an OpenAI API, told without a word of the prompt, the answer or the key."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any

from agent_memory.exceptions import ProviderError, ProviderRefused, ProviderUnavailable

BROKEN_OFF = "The provider's answer broke off: it ended without a finish reason."
OPTIONS = 'AGENT_MEMORY["PROVIDER"]["OPTIONS"]'

_KEY = f'Check OPENAI_API_KEY or {OPTIONS}["api_key"].'
_SERVER = f'Is the server running, and OPENAI_BASE_URL or {OPTIONS}["base_url"] right?'
_HINTS = {
    401: _KEY,
    403: _KEY,
    404: (
        "Check the model's name (AGENT_MEMORY[\"MODEL\"] or the agent's model) and the base_url, "
        "which usually ends in /v1; a server without the Responses API needs OpenAIChatProvider."
    ),
}
_PASSING = (408, 409, 429)
_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
_WORD = re.compile(r"[a-z][a-z0-9_]{0,63}")


def error_word(*values: Any) -> str:
    """Return the first that is an identifier, in brackets after a blank; free text is left out."""
    for value in values:
        if isinstance(value, str) and _WORD.fullmatch(value):
            return f" ({value})"
    return ""


class Exchange:
    """
    One request and its answer: whatever fails in it becomes a ``ProviderError``.

    That is raised by ``settle()``, after the block: the error it was made of holds
    the prompt and the key, and is not to be found through it.
    """

    def __init__(self) -> None:
        self._answered = False
        self._request_id: str | None = None
        self._failed: ProviderError | None = None

    def __enter__(self) -> Exchange:
        return self

    def answered(self, raw: Any) -> Any:
        """Note that the provider has begun to answer; return what was given."""
        self._answered = True
        self._request_id = raw.request_id
        return raw

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if isinstance(error, ProviderError):
            error.request_id = error.request_id or self._request_id
        elif isinstance(error, Exception):
            self._failed = self._failure(error)
        return self._failed is not None

    def settle(self) -> None:
        """Raise what went wrong, if anything did."""
        if self._failed is not None:
            raise self._failed

    def _failure(self, error: Exception) -> ProviderError | None:
        import openai

        name = type(error).__name__
        if isinstance(error, openai.APIStatusError):
            return _status_failure(error)
        if isinstance(error, openai.APITimeoutError):
            text = f'The provider did not answer in time: {name}. See {OPTIONS}["timeout"].'
        elif isinstance(error, openai.APIConnectionError) and not self._answered:
            text = f"The connection to the provider failed: {name}. {_SERVER}"
        elif isinstance(error, openai.APIError):
            text = f"The provider's answer broke off: {name}{error_word(error.code, error.type)}."
        elif isinstance(error, openai.OpenAIError):
            return ProviderRefused(f"The OpenAI client cannot send the request: {name}.")
        elif not isinstance(error, _UNREADABLE):
            return None
        elif self._answered:
            text = f"The provider's answer cannot be read: {name}. {_SERVER}"
        else:
            return ProviderRefused(
                f"The request cannot be sent: {name}. Is a value of {OPTIONS} of the wrong type?"
            )
        return ProviderUnavailable(text, request_id=self._request_id)


def _status_failure(error: Any) -> ProviderError:
    status = error.status_code
    passing = status in _PASSING or status >= 500
    told = "is not available" if passing else "refused the request"
    text = f"The provider {told}: {type(error).__name__} {status}"
    text += f"{error_word(error.code, error.type)}. {_HINTS.get(status, '')}"
    failure = ProviderUnavailable if passing else ProviderRefused
    return failure(
        text.rstrip(),
        status=status,
        request_id=error.request_id,
        retry_after=_retry_after(error.response.headers),
    )


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the provider asks to wait, given as a number or as a date."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        return seconds if 0 <= seconds < math.inf else None
    try:
        until = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, until.timestamp() - time.time())
