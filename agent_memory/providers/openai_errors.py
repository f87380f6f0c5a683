"""What went wrong at an OpenAI API, told without a word of the prompt, the answer or the key."""

from __future__ import annotations

import re
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
    One request and its answer: whatever fails in it leaves as a ``ProviderError``.

    The error it was made of is not chained: it may quote the prompt or the key.
    """

    def __init__(self) -> None:
        self._answered = False
        self._request_id: str | None = None

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
    ) -> None:
        if isinstance(error, ProviderError):
            error.request_id = error.request_id or self._request_id
        elif isinstance(error, Exception) and (failure := self._failure(error)) is not None:
            raise failure from None

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
    return failure(text.rstrip(), status=status, request_id=error.request_id)
