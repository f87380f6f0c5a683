"""What tests of agents and stores need; nothing here needs pytest or installed apps."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_memory.testing.assertions import (
        ConversationAssertions,
        assert_decided,
        assert_message_count,
        assert_nothing_stored,
        assert_pending_approvals,
        assert_prompted_with,
        assert_remembered,
        assert_roles,
    )
    from agent_memory.testing.fakes import FakeAgent, fake
    from agent_memory.testing.guards import ProviderCallForbidden
    from agent_memory.testing.overrides import (
        forbid_provider_calls,
        override_agent_memory,
        override_provider,
        override_store,
    )
    from agent_memory.testing.provider import ScriptedProvider, ScriptExhausted
    from agent_memory.testing.replies import Answer, Title, calls
    from agent_memory.testing.stores import (
        AsyncBasicConversationStoreContract,
        AsyncConversationStoreContract,
        BasicConversationStoreContract,
        ConversationStoreContract,
    )

__all__ = [
    "Answer",
    "AsyncBasicConversationStoreContract",
    "AsyncConversationStoreContract",
    "BasicConversationStoreContract",
    "ConversationAssertions",
    "ConversationStoreContract",
    "FakeAgent",
    "ProviderCallForbidden",
    "ScriptExhausted",
    "ScriptedProvider",
    "Title",
    "assert_decided",
    "assert_message_count",
    "assert_nothing_stored",
    "assert_pending_approvals",
    "assert_prompted_with",
    "assert_remembered",
    "assert_roles",
    "calls",
    "fake",
    "forbid_provider_calls",
    "override_agent_memory",
    "override_provider",
    "override_store",
]

_HOMES = {
    "Answer": "replies",
    "AsyncBasicConversationStoreContract": "stores",
    "AsyncConversationStoreContract": "stores",
    "BasicConversationStoreContract": "stores",
    "ConversationAssertions": "assertions",
    "ConversationStoreContract": "stores",
    "FakeAgent": "fakes",
    "ProviderCallForbidden": "guards",
    "ScriptExhausted": "provider",
    "ScriptedProvider": "provider",
    "Title": "replies",
    "assert_decided": "assertions",
    "assert_message_count": "assertions",
    "assert_nothing_stored": "assertions",
    "assert_pending_approvals": "assertions",
    "assert_prompted_with": "assertions",
    "assert_remembered": "assertions",
    "assert_roles": "assertions",
    "calls": "replies",
    "fake": "fakes",
    "forbid_provider_calls": "overrides",
    "override_agent_memory": "overrides",
    "override_provider": "overrides",
    "override_store": "overrides",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
