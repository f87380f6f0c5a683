"""Agents that answer from a script: ``with SupportCoach.fake(["Stored: blue."]) as fake``."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from agent_memory import providers
from agent_memory.agents import Agent
from agent_memory.messages import Message
from agent_memory.providers.base import ProviderRequest
from agent_memory.testing.decorating import Decorating
from agent_memory.testing.descriptions import brief, message_lines
from agent_memory.testing.provider import ScriptedProvider
from agent_memory.testing.replies import Reply, Title

Wanted = str | Callable[[ProviderRequest], bool]
"""The text of a prompt, or a test of a request."""


class FakeAgent(Decorating):
    """
    Lets every instance of an agent class answer from a script.

    Instances of subclasses do too, unless their class is faked itself; a provider
    that the class or an instance has is not used, and other agents are untouched.
    It holds in every thread and task while the block runs.

    At the end of the block ``AssertionError`` is raised for replies that nobody
    asked for, unless the block itself raised; and for a request beyond the script,
    even if the code under test has swallowed its ``ScriptExhausted``.
    """

    def __init__(self, agent_class: type[Agent], script: Iterable[Reply | Title] = ()) -> None:
        if not (isinstance(agent_class, type) and issubclass(agent_class, Agent)):
            raise TypeError(
                f"fake() takes a class of agents, not {agent_class!r:.80}: its instances answer "
                "from the script."
            )
        self.agent_class = agent_class
        self.script = script if isinstance(script, str) else tuple(script)
        self.provider = ScriptedProvider(self.script)
        self.provider.who = agent_class.__name__
        self._context: AbstractContextManager[None] | None = None

    def anew(self) -> FakeAgent:
        return FakeAgent(self.agent_class, self.script)

    def decorate_case(self, case_class: type[unittest.TestCase]) -> None:
        """Fake each test method: around ``setUp()`` it could not be told whether one has failed."""
        for name in unittest.defaultTestLoader.getTestCaseNames(case_class):
            setattr(case_class, name, self.decorate_function(getattr(case_class, name)))

    def __enter__(self) -> Self:
        if self._context is not None:
            raise RuntimeError("A fake can be entered once: its script is used. Make another one.")
        self._context = providers.overriding(lambda _: self.provider, self.agent_class)
        self._context.__enter__()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._context is not None
        self._context.__exit__(None, None, None)
        if error_type is not None:
            return
        if self.provider.unexpected:
            raise self.provider.exhausted(self.provider.unexpected[0])
        self.provider.assert_exhausted()

    def extend(self, replies: Iterable[Reply | Title]) -> None:
        """Add replies to the end of the script."""
        self.provider.extend(replies)

    @property
    def requests(self) -> list[ProviderRequest]:
        """What the model was asked, one for each round trip; drafts of titles are left out."""
        return self.provider.requests

    @property
    def prompts(self) -> list[str]:
        """The texts of the prompts; a prompt whose tools ran is one."""
        return [request.messages[-1].text for request in self.requests if not request.steps]

    @property
    def histories(self) -> list[tuple[Message, ...]]:
        """The messages that each request carried before its prompt, oldest first."""
        return [request.messages[:-1] for request in self.requests]

    def assert_prompted(self, wanted: Wanted) -> None:
        """Assert that a prompt had this text, or that a request passes this test."""
        if not self._was_prompted(wanted):
            raise AssertionError(f"{self._name} was not asked {_told(wanted)}. {self._story()}")

    def assert_not_prompted(self, wanted: Wanted) -> None:
        """Assert that no prompt had this text, and that no request passes this test."""
        if self._was_prompted(wanted):
            raise AssertionError(f"{self._name} was asked {_told(wanted)}. {self._story()}")

    def assert_nothing_prompted(self) -> None:
        """Assert that no request was made."""
        if self.requests:
            raise AssertionError(f"{self._name} should have been asked nothing. {self._story()}")

    def assert_sent(self, count: int) -> None:
        """Assert how many requests were made; a turn with tools makes several."""
        if len(self.requests) != count:
            raise AssertionError(
                f"{self._name} made {len(self.requests)} requests, not {count}. {self._story()}"
            )

    def assert_remembered(self, text: str) -> None:
        """Assert that the last request carried this text in its history."""
        history = self.histories[-1] if self.requests else ()
        if not any(text in message.text for message in history):
            lines = "\n".join(message_lines(history)) or "  nothing"
            raise AssertionError(
                f"The last request of {self._name} carried no {text!r:.200}. Its history:\n{lines}"
            )

    @property
    def _name(self) -> str:
        return self.agent_class.__name__

    def _was_prompted(self, wanted: Wanted) -> bool:
        if isinstance(wanted, str):
            return wanted in self.prompts
        return any(map(wanted, self.requests))

    def _story(self) -> str:
        if not self.requests:
            return "It was asked nothing."
        return "It was asked:\n" + "\n".join(f"  {brief(prompt)}" for prompt in self.prompts)


def fake(agent_class: type[Any], script: Iterable[Reply | Title] = ()) -> FakeAgent:
    """
    Return a fake of an agent class, for ``with`` or as a decorator; see ``FakeAgent``.

    A decorator makes a fake for each run, with the script from its start. Raises
    ``TypeError`` for what is no agent class and for what is no reply.
    """
    return FakeAgent(agent_class, script)


def _told(wanted: Wanted) -> str:
    return repr(wanted) if isinstance(wanted, str) else "what the test wants"
