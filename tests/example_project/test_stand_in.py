"""The stand-in answers only from what it is sent, in shapes that the official client takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest

from example_project.endpoints import stand_in

Ask = Callable[[openai.OpenAI, list[dict[str, Any]]], str]

BLUE = [
    {"role": "user", "content": "Remember: blue."},
    {"role": "assistant", "content": "Stored: blue."},
]
QUESTION = {"role": "user", "content": "What did I say?"}


@pytest.fixture(scope="module")
def client() -> Iterator[openai.OpenAI]:
    with (
        stand_in.serve() as url,
        openai.OpenAI(base_url=url, api_key="unused", max_retries=0) as client,
    ):
        yield client


def responses(client: openai.OpenAI, messages: list[dict[str, Any]]) -> str:
    response = client.responses.create(model="any", input=messages)
    assert response.status == "completed"
    return response.output_text


def responses_streamed(client: openai.OpenAI, messages: list[dict[str, Any]]) -> str:
    events = list(client.responses.create(model="any", input=messages, stream=True))
    assert events[-1].type == "response.completed"
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert len(deltas) > 1
    assert "".join(deltas) == events[-1].response.output_text
    return "".join(deltas)


def chat(client: openai.OpenAI, messages: list[dict[str, Any]]) -> str:
    (choice,) = client.chat.completions.create(model="any", messages=messages).choices
    assert choice.finish_reason == "stop"
    return choice.message.content


def chat_streamed(client: openai.OpenAI, messages: list[dict[str, Any]]) -> str:
    chunks = list(client.chat.completions.create(model="any", messages=messages, stream=True))
    choices = [choice for chunk in chunks for choice in chunk.choices]
    assert choices[-1].finish_reason == "stop"
    return "".join(choice.delta.content or "" for choice in choices)


@pytest.fixture(params=[responses, responses_streamed, chat, chat_streamed])
def ask(request: pytest.FixtureRequest) -> Ask:
    return request.param


def test_it_stores_in_so_many_words(client: openai.OpenAI, ask: Ask) -> None:
    assert ask(client, BLUE[:1]) == "Stored: blue."


def test_it_recalls_what_a_user_said_in_the_messages_sent(client: openai.OpenAI, ask: Ask) -> None:
    assert ask(client, [*BLUE, QUESTION]) == "Recalled: blue."


def test_without_the_history_it_has_nothing_to_recall(client: openai.OpenAI, ask: Ask) -> None:
    ask(client, BLUE[:1])
    assert ask(client, [QUESTION]) == "I was sent nothing to recall."


@pytest.mark.heavy
def test_it_recalls_the_last_of_several(client: openai.OpenAI, ask: Ask) -> None:
    green = {"role": "user", "content": "Remember: light green."}
    assert ask(client, [*BLUE, green, QUESTION]) == "Recalled: light green."
    assert ask(client, [green, *BLUE, QUESTION]) == "Recalled: blue."


@pytest.mark.heavy
def test_only_what_a_user_said_counts(client: openai.OpenAI, ask: Ask) -> None:
    others = [{"role": role, "content": "Remember: red."} for role in ("system", "assistant")]
    assert ask(client, [*others, QUESTION]) == "I was sent nothing to recall."


@pytest.mark.heavy
def test_to_anything_else_it_says_what_it_is(client: openai.OpenAI, ask: Ask) -> None:
    praise = {"role": "user", "content": "Well done."}
    assert ask(client, [*BLUE, praise]) == "I am a stand-in for a model. I was sent 3 messages."


@pytest.mark.heavy
def test_greeted_it_says_what_it_knows(client: openai.OpenAI, ask: Ask) -> None:
    for greeting in ("Hello!", "help"):
        assert "three things" in ask(client, [{"role": "user", "content": greeting}])


REFUND = {"role": "user", "content": "Please refund 12.50 for my order A-7."}
PARAMETERS = {"type": "object", "properties": {}}


def test_asked_for_a_refund_it_calls_the_tool_and_tells_its_result(client: openai.OpenAI) -> None:
    tool: Any = {"type": "function", "name": "refund", "parameters": PARAMETERS, "strict": False}
    asked = client.responses.create(model="any", input=[REFUND], tools=[tool])
    (call,) = asked.output
    assert (call.name, call.arguments) == ("refund", '{"order": "A-7", "amount": "12.50"}')
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "Paid."}
    told = client.responses.create(model="any", input=[REFUND, call, result], tools=[tool])
    assert told.output_text == "Paid."
    with client.responses.stream(model="any", input=[REFUND], tools=[tool]) as events:
        (streamed,) = events.until_done().get_final_response().output
    assert (streamed.name, streamed.arguments) == (call.name, call.arguments)


@pytest.mark.heavy
def test_it_calls_the_tool_over_the_other_api_too(client: openai.OpenAI) -> None:
    tool: Any = {"type": "function", "function": {"name": "refund", "parameters": PARAMETERS}}
    options: Any = {"model": "any", "messages": [REFUND], "tools": [tool]}
    (choice,) = client.chat.completions.create(**options).choices
    (call,) = choice.message.tool_calls
    assert choice.finish_reason == "tool_calls"
    assert call.function.arguments == '{"order": "A-7", "amount": "12.50"}'
    with client.chat.completions.stream(**options) as chunks:
        (choice,) = chunks.until_done().get_final_completion().choices
    assert choice.message.tool_calls[0].function.name == "refund"
    result = {"role": "tool", "tool_call_id": call.id, "content": "Paid."}
    options["messages"] = [REFUND, choice.message, result]
    (choice,) = client.chat.completions.create(**options).choices
    assert choice.message.content == "Paid."


@pytest.mark.heavy
def test_without_the_tool_it_calls_nothing(client: openai.OpenAI, ask: Ask) -> None:
    assert ask(client, [REFUND]).startswith("I am a stand-in")


def test_a_text_in_parts_is_read_whole(client: openai.OpenAI) -> None:
    parts = [{"type": "input_text", "text": "Remember: "}, {"type": "input_text", "text": "blue."}]
    assert responses(client, [{"role": "user", "content": parts}]) == "Stored: blue."


def test_a_title_is_made_of_the_words_sent(client: openai.OpenAI) -> None:
    def title(text: str) -> str:
        return client.responses.create(
            model="any", instructions="Write a title for it.", input=text
        ).output_text

    assert title("Remember: blue.") == "About blue"
    assert title("How do I reset my old password, please?") == "About How do I reset"


@pytest.mark.heavy
def test_usage_counts_the_words_sent_and_answered(client: openai.OpenAI) -> None:
    response = client.responses.create(
        model="any", instructions="Be kind.", input="Remember: blue."
    )
    assert response.usage is not None
    usage = response.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (4, 2, 6)
    completion = client.chat.completions.create(model="any", messages=BLUE)
    assert completion.usage is not None
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (4, 12)


def test_streams_end_with_the_usage(client: openai.OpenAI) -> None:
    *_, last = client.responses.create(model="any", input="Remember: blue.", stream=True)
    assert last.response.usage.total_tokens == 4
    *_, chunk = client.chat.completions.create(
        model="any", messages=BLUE[:1], stream=True, stream_options={"include_usage": True}
    )
    assert chunk.usage.total_tokens == 4


def test_the_clients_own_stream_helpers_take_the_events(client: openai.OpenAI) -> None:
    with client.responses.stream(model="any", input=[*BLUE, QUESTION]) as events:
        assert events.until_done().get_final_response().output_text == "Recalled: blue."
    with client.chat.completions.stream(model="any", messages=[*BLUE, QUESTION]) as chunks:
        (choice,) = chunks.until_done().get_final_completion().choices
        assert choice.message.content == "Recalled: blue."


def test_what_it_does_not_serve_is_refused(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="does not serve /v1/embeddings"):
        client.embeddings.create(model="any", input="blue")


def test_what_it_cannot_read_is_refused(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="cannot read"):
        client.post("/responses", body={"input": [1]}, cast_to=object)
