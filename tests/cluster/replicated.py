"""Use the store over a primary and its replica, and tell what was seen."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import uuid4

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import connections

from agent_memory import Agent, Approve, Message, RemembersConversations, conversation_store, tool
from agent_memory.exceptions import AgentMemoryError
from agent_memory.journals import JournalEntry
from agent_memory.messages import Step, TextPart, ToolCall, Turn
from agent_memory.participants import Participant
from agent_memory.records import Heading, Once
from agent_memory.testing import ScriptedProvider, override_provider
from tests.agents import WAYS, ask
from tests.cluster import replica
from tests.cluster.telling import tell
from tests.fixtures import (
    resume_as_a_stream,
    resume_as_a_stream_in_a_task,
    resume_in_a_task,
    resume_plainly,
)

RESUMES = resume_plainly, resume_in_a_task, resume_as_a_stream, resume_as_a_stream_in_a_task


@tool
def note() -> str:
    """Take a note."""
    return "noted"


@tool(needs_approval=True)
def pay() -> str:
    """Pay a bill."""
    return "paid"


class Coach(RemembersConversations, Agent):
    label = "coach"
    tools = (note, pay)


def reply(request: Any) -> Any:
    """Answer with the prompt before this one."""
    asked = [message.text for message in request.messages if message.role == "user"]
    if asked[-1] in ("Note", "Pay") and not request.steps:
        return ToolCall(id="call", name=asked[-1].lower())
    return f"after {asked[-2]}" if asked[1:] else "first"


def texts(conversation_id: str) -> list[str]:
    return [
        row.content for row in conversation_store.paginate_conversation_messages(conversation_id)
    ]


def listed(owner: Any) -> list[str]:
    return [found.id for found in conversation_store.list_conversations(owner)]


def refused(work: Callable[[], Any]) -> str:
    try:
        work()
    except AgentMemoryError as error:
        return type(error).__name__
    return ""


def take_turns(ann: User, notes: replica.Notes) -> str:
    """Do all that reserves, loads and writes; return the conversation of most of it."""
    for way in WAYS:
        with notes.of(f"turns by {way}"):
            opened = ask(way, Coach().for_user(ann), f"Hello by {way}")
            ask(way, Coach().continue_last_conversation(ann), "Note")
        with notes.of(f"one key twice by {way}"):
            options = {"idempotency_key": way, "conversation_id": f"{way} {ann.pk}"}
            answers = [ask(way, Coach().for_user(ann), "Once", **options) for _ in range(2)]
            assert len({answer.user_message_id for answer in answers}) == 1
    assert opened.conversation_id
    with notes.of("a conversation opened on purpose"):
        led = Coach().start_conversation(ann, leading=[Message("system", "Be kind.")])
        led.prompt("Hello")
    return opened.conversation_id


def meet_obstacles(one: str, ann: User, notes: replica.Notes) -> dict[str, str]:
    """Run into all that a reservation can; return what was said."""
    seen, coach = {}, Coach().continue_conversation(one)
    with notes.of("ownership"):
        Coach().continue_conversation(one, ann, must_own=True).prompt("Mine?")
        foreign = Coach().continue_conversation(one, None, must_own=True)
        seen["a foreign one"] = refused(lambda: foreign.prompt("Mine?"))
    with notes.of("a busy conversation"):
        taken = conversation_store.reserve(one)
        seen["a busy one"] = refused(lambda: coach.prompt("Now?"))
        conversation_store.renew(taken, 5)
        conversation_store.release(taken)
    with notes.of("burying what a killed worker has left"):
        said = Message("user", "Killed")
        taken = conversation_store.reserve(one, once=Once.of("killed", said))
        calls = Step(items=(ToolCall(id="call", name="note"),), finish_reason="tool_calls")
        heading = Heading(one, Participant.of(ann), Coach.label)
        conversation_store.journal(taken, JournalEntry(1, -1, calls, heading, said), 0)
        seen["after a killed worker"] = coach.prompt("And then?").text
        seen["its key"] = refused(lambda: coach.prompt("Killed", idempotency_key="killed"))
    return seen


def use_the_store(one: str, ann: User, notes: replica.Notes) -> None:
    with notes.of("the store's own methods"):
        steps = (Step(items=(TextPart(text="b"),), finish_reason="stop"),)
        stored = conversation_store.append(
            f"direct {ann.pk}", Turn(user=Message("user", "a"), steps=steps)
        )
        conversation_store.load(stored.conversation_id)
        conversation_store.get(one)
        conversation_store.conversation_belongs_to(one, ann)
        conversation_store.rename(one, "A name")
        conversation_store.latest_conversation_id(ann, Coach.label)
        conversation_store.clear(stored.conversation_id)


def read(one: str, ann: User, notes: replica.Notes) -> dict[str, Any]:
    """Read what a replica may be asked for."""
    seen: dict[str, Any] = {}
    replica.catch_up()
    with notes.of("a page"):
        seen["page"] = texts(one)
    with notes.of("a page in a task"):
        async_to_sync(conversation_store.apaginate_conversation_messages)(one)
        seen["left open"] = [alias for alias in replica.ALIASES if connections[alias].connection]
    with notes.of("a list"):
        seen["list"] = len(listed(ann))
    ContentType.objects.using("default").filter(model="place").delete()
    ContentType.objects.clear_cache()
    replica.catch_up()
    with notes.of("a list of a model's that has no content type yet"):
        seen["list of a new model's"] = listed(Participant("testapp.place", "here"))
    return seen


def wait_for_a_person(ann: User) -> list[Any]:
    """Pause turns, decide on their calls and resume them; return what was seen of each."""
    seen = []
    for way, resume in zip(WAYS, RESUMES, strict=True):
        paused = str(ask(way, Coach().for_user(ann), "Pay").conversation_id)
        mine = Coach().continue_conversation(paused, ann, must_own=True)
        waiting = [call.name for call in conversation_store.pending_approvals_for(paused)]
        busy = refused(partial(mine.prompt, "And?"))
        left = conversation_store.decide(paused, {"*": Approve()}, decided_by=ann)
        (result,) = resume(mine).turn.tool_results()
        seen.append([waiting, busy, list(left), result.value])
    return seen


def go_on_beside_a_stale_replica(one: str, ann: User, notes: replica.Notes) -> dict[str, Any]:
    replica.catch_up()
    before = texts(one), listed(ann)
    replica.stand_still()
    try:
        mine = Coach().continue_conversation(one, ann, must_own=True)
        answers = [ask(way, mine, f"Still {way}").text for way in WAYS]
        with notes.of("approvals beside a stale replica"):
            waited = wait_for_a_person(ann)
        new = Coach().for_user(ann).prompt("A new one").conversation_id
        assert new
        seen = {
            "answers": answers,
            "what waited for a person": waited,
            "the new one is the user's": conversation_store.conversation_belongs_to(new, ann),
            "the new one can be got": conversation_store.get(new) is not None,
            "the new one is owned": Coach()
            .continue_conversation(new, ann, must_own=True)
            .prompt("Mine?")
            .text,
            "the last one goes on": Coach().continue_last_conversation(ann).prompt("More?").text,
            "pages are stale": (texts(one), listed(ann), texts(new)) == (*before, []),
        }
    finally:
        replica.go_on()
    seen["the page then"] = texts(one)[:8:2]
    seen["the list then"] = listed(ann)[0] == new
    return seen


def main() -> None:
    ann = User.objects.create_user(f"ann {uuid4()}")
    script = ScriptedProvider([reply] * 100)
    with override_provider(script), replica.Notes().taken() as notes:
        one = take_turns(ann, notes)
        obstacles = meet_obstacles(one, ann, notes)
        use_the_store(one, ann, notes)
        pages = read(one, ann, notes)
        with notes.of("a stale replica"):
            stale = go_on_beside_a_stale_replica(one, ann, notes)
    tell(
        obstacles=obstacles,
        pages=pages,
        stale=stale,
        noted=notes.statements,
    )
