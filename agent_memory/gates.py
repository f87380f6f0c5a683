"""Whether a person must allow a tool call: never, always, or as a rule says of each."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Self

from asgiref.sync import async_to_sync, sync_to_async
from django.utils.functional import Promise

from agent_memory.signatures import InvalidArguments, Parameters, Signature

logger = logging.getLogger("agent_memory")

Answer = bool | str | Promise
NeedsApproval = Answer | Callable[..., Answer | Awaitable[Answer]]
"""``True``, a reason, or a rule: a function that says one of these or ``False``."""

LONGEST_EXPIRY = timedelta(days=36500)
"""Databases know no dates after the year 9999."""


class Rule(Parameters):
    """
    Says of each call of a tool whether a person must allow it.

    Its function gets those arguments of the tool that it names, defaults
    included, and the context by its hint. Raises ``TypeError`` for one that
    names others.
    """

    def __init__(self, function: Callable[..., Any], tool: Signature, context: type) -> None:
        super().__init__(function, f"The rule of {tool.what[0].lower()}{tool.what[1:]}", context)
        self.function, self.tool = function, tool
        self._takes_all = False
        for name, parameter in self.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                self._takes_all = True
            elif parameter.default is parameter.empty and name not in tool.parameters:
                raise TypeError(f"{self.what} takes {name!r}, which is no argument of the tool.")

    @classmethod
    def of(cls, needs_approval: NeedsApproval, tool: Signature, context: type) -> Self:
        """Return what ``needs_approval`` means; raises ``ValueError`` for what means nothing."""
        if callable(needs_approval):
            return cls(needs_approval, tool, context)
        lazy = isinstance(needs_approval, Promise)  # translated when asked, and not before
        if not (lazy or isinstance(needs_approval, bool | str)) or needs_approval == "":
            raise ValueError(
                "needs_approval is True, False, a reason or a function that says one of these, "
                f"not {needs_approval!r:.80}."
            )
        return cls(lambda: needs_approval, tool, context)

    def ask(self, validate: Callable[[], dict[str, Any]], context: object) -> str | None:
        """
        Return why a person must allow a call; ``""`` is a reason without words.

        ``None``: nobody must, as with arguments that do not fit, with which the
        tool does not run either. A rule that fails is a reason.
        """
        if self.is_async:
            return async_to_sync(self.aask)(validate, context)
        try:
            arguments = self._arguments(validate, context)
            return None if arguments is None else _reason(self.function(**arguments))
        except Exception as error:  # whatever a rule raises: it has not said that the call may run
            return self._unsure(error)

    async def aask(self, validate: Callable[[], dict[str, Any]], context: object) -> str | None:
        """See ask(). A function that is not async runs on the thread of the caller's ORM."""
        if not self.is_async:
            return await sync_to_async(self.ask)(validate, context)
        try:
            arguments = self._arguments(validate, context)
            return None if arguments is None else _reason(await self.function(**arguments))
        except Exception as error:  # see ask()
            return self._unsure(error)

    def _arguments(
        self, validate: Callable[[], dict[str, Any]], context: object
    ) -> dict[str, Any] | None:
        try:
            known = {**self.tool.defaults(), **validate()}
        except InvalidArguments:
            return None
        named = {name: known[name] for name in known if self._takes_all or name in self.parameters}
        return self.filled(named, context)

    def _unsure(self, error: Exception) -> str:
        logger.error("%s failed.", self.what, exc_info=error)
        return f"The rule that decides on this call failed: {type(error).__name__}."


def check_expiry(expires: object, needs_approval: object) -> None:
    """Raise ``ValueError`` for a time after which no approval can expire."""
    if expires is None:
        return
    if not isinstance(expires, timedelta) or not timedelta() < expires <= LONGEST_EXPIRY:
        raise ValueError(
            f"approval_expires is a timedelta above 0 and at most 100 years, not {expires!r}."
        )
    if needs_approval is False:
        raise ValueError("approval_expires goes with needs_approval: there is nothing to expire.")


def _reason(answer: object) -> str | None:
    """Return an answer as a reason; only ``False`` is none."""
    if answer is False:
        return None
    if answer is True:
        return ""
    if isinstance(answer, str | Promise):
        return str(answer)
    raise TypeError(f"A rule says True, False or a reason, not {type(answer).__name__}.")
