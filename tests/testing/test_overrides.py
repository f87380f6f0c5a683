"""Overrides hold for a block, a function, a coroutine function or a test case, and end with it."""

from __future__ import annotations

import unittest

import pytest
from asgiref.sync import async_to_sync
from django.test import SimpleTestCase

from agent_memory import conf
from agent_memory.messages import Message
from agent_memory.providers import Provider, ProviderRequest, get_provider
from agent_memory.stores import get_store
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing import (
    ProviderCallForbidden,
    ScriptedProvider,
    forbid_provider_calls,
    override_agent_memory,
    override_provider,
    override_store,
)
from agent_memory.testing.contract.base import plain_turn

REQUEST = ProviderRequest(model="test-model", messages=(Message("user", "Hello"),))


def test_a_store_is_overridden_for_a_block_by_a_fresh_one():
    with override_store() as store:
        assert isinstance(store, InMemoryConversationStore)
        assert get_store() is get_store("nowhere.Store") is store
        with override_store() as inner:
            assert get_store() is inner is not store
        assert get_store() is store
    with override_store() as other:
        assert other is not store


def test_a_given_store_or_provider_is_used_as_it_is():
    store, provider = InMemoryConversationStore(), ScriptedProvider()
    with override_store(store) as used, override_provider(provider) as asked:
        assert get_store() is used is store
        assert get_provider() is asked is provider
        assert get_provider(ScriptedProvider()) is provider


def test_an_override_ends_when_its_block_fails():
    override = override_provider(ScriptedProvider())
    with pytest.raises(ZeroDivisionError), override, override_store() as store:
        raise ZeroDivisionError
    with override_store():
        assert get_store() is not store
    with forbid_provider_calls(), pytest.raises(ProviderCallForbidden):
        get_provider().complete(REQUEST)


def test_a_decorated_function_has_a_fresh_store_each_time():
    seen = []

    @override_store()
    def work(word: str, *, again: bool = False) -> str:
        seen.append(get_store())
        assert get_store().load("one") == ()
        get_store().append("one", plain_turn())
        if again:
            work(word)
            assert get_store().load("one") == plain_turn().messages
        return word

    assert work("a", again=True) == work("a") == "a"
    assert len(set(map(id, seen))) == 3
    assert work.__name__ == "work"


def test_a_decorated_coroutine_function_is_overridden_while_it_runs():
    provider = ScriptedProvider(["Hello"])

    @override_provider(provider)
    async def work() -> str:
        reply = await get_provider().acomplete(REQUEST)
        return reply.step.text

    with forbid_provider_calls():
        pending = work()
        with pytest.raises(ProviderCallForbidden):
            get_provider().complete(REQUEST)

        async def finish() -> str:
            return await pending

        assert async_to_sync(finish)() == "Hello"
    provider.assert_exhausted()


def test_a_decorated_test_case_is_overridden_in_each_of_its_tests():
    stores = []

    @override_store()
    @override_agent_memory(MODEL="other-model")
    class Case(SimpleTestCase):
        def setUp(self) -> None:
            self.store = get_store()

        def test_sync(self) -> None:
            assert conf.setting("MODEL") == "other-model"
            assert get_store() is self.store
            stores.append(self.store)

        async def test_async(self) -> None:
            assert get_store() is self.store
            stores.append(self.store)

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert (result.testsRun, result.failures, result.errors) == (2, [], [])
    assert stores[0] is not stores[1]
    assert conf.setting("MODEL") == "test-model"
    with override_store() as store:
        assert store not in stores


@pytest.mark.parametrize("wrong", ["store", object(), InMemoryConversationStore])
def test_what_is_no_store_or_provider_is_refused_at_once(wrong):
    with pytest.raises(TypeError, match="ConversationStore"):
        override_store(wrong)
    with pytest.raises(TypeError, match="takes a Provider"):
        override_provider(wrong)


def test_every_call_of_a_forbidden_provider_names_the_remedy():
    async def astream(provider: Provider) -> None:
        async for _ in provider.astream(REQUEST):
            pass

    with forbid_provider_calls():
        provider = get_provider(ScriptedProvider(["Hello"]))
        for call in (
            lambda: provider.complete(REQUEST),
            lambda: async_to_sync(provider.acomplete)(REQUEST),
            lambda: list(provider.stream(REQUEST)),
            lambda: async_to_sync(astream)(provider),
        ):
            with pytest.raises(ProviderCallForbidden, match="ScriptedProvider"):
                call()
    assert issubclass(ProviderCallForbidden, AssertionError)


def test_settings_are_overridden_key_by_key():
    with override_agent_memory(MODEL="a", KEEP_LAST_TURNS=7):
        assert (conf.setting("MODEL"), conf.setting("KEEP_LAST_TURNS")) == ("a", 7)
        assert conf.setting("GENERATE_TITLES") is False
        with override_agent_memory(MODEL="b"):
            assert (conf.setting("MODEL"), conf.setting("KEEP_LAST_TURNS")) == ("b", 7)
        assert conf.setting("MODEL") == "a"
    assert (conf.setting("MODEL"), conf.setting("KEEP_LAST_TURNS")) == ("test-model", 50)


def test_settings_may_be_overridden_again_by_the_same_decorator():
    @override_agent_memory(MODEL="a")
    def model() -> str:
        return conf.setting("MODEL")

    assert model() == "a"
    with override_agent_memory(KEEP_LAST_TURNS=7):
        assert model() == "a"
        assert conf.setting("KEEP_LAST_TURNS") == 7
    assert conf.setting("MODEL") == "test-model"
