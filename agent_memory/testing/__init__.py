"""What tests of agents and stores need; nothing here needs pytest or installed apps."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_memory.testing.overrides import (
        ProviderCallForbidden,
        forbid_provider_calls,
        override_agent_memory,
        override_provider,
        override_store,
    )
    from agent_memory.testing.provider import ScriptedProvider, ScriptExhausted
    from agent_memory.testing.stores import (
        AsyncBasicConversationStoreContract,
        AsyncConversationStoreContract,
        BasicConversationStoreContract,
        ConversationStoreContract,
    )

__all__ = [
    "AsyncBasicConversationStoreContract",
    "AsyncConversationStoreContract",
    "BasicConversationStoreContract",
    "ConversationStoreContract",
    "ProviderCallForbidden",
    "ScriptExhausted",
    "ScriptedProvider",
    "forbid_provider_calls",
    "override_agent_memory",
    "override_provider",
    "override_store",
]

_HOMES = {
    "AsyncBasicConversationStoreContract": "stores",
    "AsyncConversationStoreContract": "stores",
    "BasicConversationStoreContract": "stores",
    "ConversationStoreContract": "stores",
    "ProviderCallForbidden": "overrides",
    "ScriptExhausted": "provider",
    "ScriptedProvider": "provider",
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
