"""
A real language model on loopback, remembered by the whole app.

The model is so small that it babbles: structure is asserted, and what was
stored and sent, never what it says.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from agent_memory import (
    Agent,
    AnonymousAgent,
    Message,
    RemembersConversations,
    conversation_store,
    tool,
)
from agent_memory.exceptions import ProviderRefused
from agent_memory.messages import ToolCall
from agent_memory.providers import Provider, ProviderReply, ProviderRequest
from agent_memory.providers.openai_chat import OpenAIChatProvider
from agent_memory.providers.openai_responses import OpenAIResponsesProvider
from agent_memory.responses import Event, Finished, Response, Started, TextDelta
from example_project.endpoints import local_model

pytestmark = [pytest.mark.e2e, pytest.mark.django_db]

TEMPLATE = Path(__file__).parent / "e2e" / "chat.jinja"


@tool
def get_weather(city: str) -> dict[str, str]:
    """Get the weather of a city."""
    return {"city": city, "sky": "clear"}


class Coach(RemembersConversations, Agent):
    instructions = "You are a support coach. Keep replies short."
    max_steps = 2
    model = local_model.NAME


class Noted(Provider):
    """Notes the requests to another provider."""

    def __init__(self, inner: Provider) -> None:
        super().__init__()
        self.inner, self.requests = inner, list[ProviderRequest]()

    def complete(self, request: ProviderRequest) -> ProviderReply:
        self.requests.append(request)
        return self.inner.complete(request)

    async def acomplete(self, request: ProviderRequest) -> ProviderReply:
        self.requests.append(request)
        return await self.inner.acomplete(request)

    def stream(self, request: ProviderRequest) -> Generator[Event | ProviderReply, None, None]:
        self.requests.append(request)
        return self.inner.stream(request)

    def astream(self, request: ProviderRequest) -> AsyncGenerator[Event | ProviderReply, None]:
        self.requests.append(request)
        return self.inner.astream(request)


def check_events(events: list[Event]) -> Response:
    """Return the response with which a stream ended; its events tell the same."""
    first, *_, last = events
    assert isinstance(first, Started)
    assert isinstance(last, Finished)
    assert first.conversation_id == last.response.conversation_id
    deltas = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert deltas == "".join(step.text for step in last.response.turn.steps)
    return last.response


def prompt(agent: Agent, text: str) -> Response:
    return agent.prompt(text)


def aprompt(agent: Agent, text: str) -> Response:
    return async_to_sync(agent.aprompt)(text)


def stream(agent: Agent, text: str) -> Response:
    return check_events(list(agent.stream(text)))


def astream(agent: Agent, text: str) -> Response:
    async def collect() -> list[Event]:
        return [event async for event in agent.astream(text)]

    return check_events(async_to_sync(collect)())


Ask = Callable[[Agent, str], Response]


@pytest.fixture(params=[prompt, aprompt, stream, astream], ids=lambda ask: ask.__name__)
def ask(request: pytest.FixtureRequest) -> Ask:
    given: Ask = request.param
    return given


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Serve the model under a chat template that tells it of tools, with room for a call."""
    import xllamacpp

    class ServerWithTools(xllamacpp.Server):  # type: ignore[misc]
        def __new__(cls, params: Any) -> Any:
            params.chat_template = TEMPLATE.read_text()
            params.n_predict = 64
            return super().__new__(cls, params)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(xllamacpp, "Server", ServerWithTools)
        with local_model.serve() as served:
            yield served


@pytest.fixture(
    params=[OpenAIResponsesProvider, OpenAIChatProvider], ids=lambda provider: provider.__name__
)
def provider(request: pytest.FixtureRequest, url: str) -> Iterator[Noted]:
    with openai.DefaultHttpx2Client() as client:
        options = {"http_client": client, "async_http_client": openai.DefaultAsyncHttpx2Client}
        yield Noted(request.param(base_url=url, api_key="unused", **options))


@pytest.fixture
def user() -> User:
    return User.objects.create(username="ada")


def test_a_conversation_with_a_real_model_is_stored_and_sent_back(
    provider: Noted, ask: Ask, user: User
) -> None:
    coach = Coach(provider=provider)
    first = ask(coach.for_user(user), "Remember: blue.")
    assert first.conversation_id is not None
    second = ask(
        coach.continue_conversation(first.conversation_id, user, must_own=True), "What did I say?"
    )

    for response in (first, second):
        (step,) = response.turn.steps
        assert response.status == "completed"
        assert response.text
        assert step.finish_reason in ("stop", "length")
        assert step.usage.input_tokens > 0
        assert step.usage.output_tokens > 0
    assert second.conversation_id == first.conversation_id

    opening, again = provider.requests
    assert opening.messages == (Message("user", "Remember: blue."),)
    assert again.messages == (
        Message("user", "Remember: blue."),
        Message("assistant", first.text),
        Message("user", "What did I say?"),
    )
    assert {request.instructions for request in provider.requests} == {Coach.instructions}
    # What the model itself counted: the history has reached it.
    assert second.usage.input_tokens > first.usage.input_tokens + first.usage.output_tokens

    page = conversation_store.paginate_conversation_messages(first.conversation_id)
    assert [(message.role, message.content) for message in page] == [
        ("assistant", second.text),
        ("user", "What did I say?"),
        ("assistant", first.text),
        ("user", "Remember: blue."),
    ]
    assert [message.usage for message in page if message.role == "assistant"] == [
        second.usage,
        first.usage,
    ]
    assert conversation_store.conversation_belongs_to(first.conversation_id, user)


def test_a_real_model_calls_a_tool_and_the_call_is_remembered_with_its_result(
    provider: Noted, ask: Ask, user: User
) -> None:
    coach = Coach(provider=provider, tools=[get_weather]).for_user(user)
    response = ask(coach, "Please use get_weather for Berlin.")

    assert response.status == "completed"
    assert len(response.turn.steps) > 1
    call = response.turn.tool_calls()[0]
    assert call.name == "get_weather"
    assert call.result is not None
    assert call.result.value == {**call.arguments, "sky": "clear"}
    assert response.conversation_id is not None

    answer, question = conversation_store.paginate_conversation_messages(response.conversation_id)
    assert answer.steps == tuple(
        step.model_copy(update={"replay": None}) for step in response.turn.steps
    )
    assert answer.tool_calls()[0] == call
    assert question.content == "Please use get_weather for Berlin."

    asked = len(provider.requests)
    assert asked == len(response.turn.steps)
    assert provider.requests[1].steps == response.turn.steps[:1]
    ask(coach, "Thank you.")
    assert provider.requests[asked].messages == (
        *response.turn.messages,
        Message("user", "Thank you."),
    )


def test_a_conversation_of_one_api_goes_on_with_the_other(
    url: str, provider: Noted, user: User
) -> None:
    (other,) = {OpenAIResponsesProvider, OpenAIChatProvider} - {type(provider.inner)}
    coach = Coach(provider=provider, tools=[get_weather]).for_user(user)
    first = coach.prompt("Please use get_weather for Berlin.")
    assert first.turn.tool_calls()
    with openai.DefaultHttpx2Client() as client:
        options = {"http_client": client, "async_http_client": openai.DefaultAsyncHttpx2Client}
        crossed = Noted(other(base_url=url, api_key="unused", **options))
        assert first.conversation_id is not None
        again = Coach(provider=crossed, tools=[get_weather])
        second = again.continue_conversation(first.conversation_id, user).prompt("Thank you.")
    told = (*first.turn.messages, Message("user", "Thank you."))
    assert crossed.requests[0].messages == told
    assert second.status == "completed"
    assert second.turn.steps[0].provider == other.name
    # What the model itself counted: all that the first turn ended with has reached it, and more.
    ended = first.turn.steps[-1].usage
    assert second.turn.steps[0].usage.input_tokens > ended.input_tokens


def test_a_history_with_repeated_ids_and_a_missing_result_is_answered(
    provider: Noted,
) -> None:
    call = ToolCall(id="call_0", name="get_weather", arguments={"city": "Berlin"})
    history = [
        Message("user", "The weather of Berlin?"),
        Message("assistant", "", tool_calls=(call,)),
        Message("user", "And again?"),
        Message("assistant", "", tool_calls=(call,)),
        Message("tool", "clear", tool_call_id="call_0"),
        Message("tool", "a stray", tool_call_id="call_9"),
    ]
    agent = AnonymousAgent(messages=history, model=local_model.NAME, provider=provider)
    assert agent.prompt("Thank you.").turn.steps[0].usage.output_tokens > 0


def test_a_prompt_that_is_too_long_for_the_model_is_refused(provider: Noted) -> None:
    agent = AnonymousAgent(model=local_model.NAME, provider=provider)
    with pytest.raises(ProviderRefused, match=r"400 \(exceed_context_size_error\)") as raised:
        agent.prompt("blue " * 9000)
    assert raised.value.status == 400


def test_a_title_drafted_by_a_real_model_is_kept(
    provider: Noted, user: User, settings: Any
) -> None:
    settings.AGENT_MEMORY = {**settings.AGENT_MEMORY, "GENERATE_TITLES": True}
    response = Coach(provider=provider).for_user(user).prompt("Remember: blue.")
    assert response.conversation_id is not None
    conversation = conversation_store.get(response.conversation_id)
    assert conversation is not None
    assert 0 < len(conversation.title) <= 100
    assert conversation.title_source in ("draft", "prompt")
