"""The demo's conversations, step by step, each checked on what was sent and what was stored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

from agent_memory import conversation_store
from agent_memory.exceptions import ConversationDoesNotExist
from agent_memory.records import MessagePage
from example_project.chat.agents import SupportCoach
from example_project.endpoints.sent import Said, SentMessages
from example_project.endpoints.serving import Endpoint
from example_project.endpoints.stand_in import NOTHING

REMEMBER, REMEMBER_OTHER, ASK = "Remember: blue.", "Remember: green.", "What did I say?"
STORED, STORED_OTHER = "Stored: blue.", "Stored: green."
RECALLED, RECALLED_OTHER = "Recalled: blue.", "Recalled: green."
ROWS_PER_PAGE = 4
PROCESS_SECONDS = 120
MANAGE = Path(__file__).resolve().parents[2] / "manage.py"


class MemoryFailed(Exception):
    """A check failed; the text says which."""


@dataclass
class Minutes:
    """A conversation as the demonstration itself wrote it down, to compare with."""

    owner: Any
    name: str
    id: str = ""
    said: list[Said] = field(default_factory=list)


class Answer(NamedTuple):
    """What came back to a prompt, and what the model had been sent for it (``None``: nothing)."""

    text: str
    conversation_id: str
    sent: list[Said] | None


class Demonstration:
    """Holds the conversations of a user and of a team with the same key."""

    def __init__(
        self,
        endpoint: Endpoint,
        sent: SentMessages,
        staff: Any,
        team: Any,
        write: Callable[[str], Any],
    ) -> None:
        self.endpoint = endpoint
        self.sent = sent
        self.write = write
        self.coach = SupportCoach(provider=endpoint.provider(sent), model=endpoint.model)
        self.staff = Minutes(staff, "staff")
        self.team = Minutes(team, "team")
        self.step_number = 0

    def hold(self) -> None:
        """Go through all steps; raises ``MemoryFailed`` at the first check that fails."""
        for step in (
            self.remember,
            self.recall,
            self.resume_in_a_second_process,
            self.resume_the_last_conversation,
            self.keep_user_and_team_apart,
            self.narrow_the_window,
            self.show_the_title,
            self.read_back,
        ):
            self.step_number += 1
            step()

    # The steps.

    def remember(self) -> None:
        self.tell("Remember", "SupportCoach().for_user(staff)")
        answer = self.prompt(self.coach.for_user(self.staff.owner), REMEMBER)
        self.verify(self.staff, REMEMBER, answer, exact=STORED)

    def recall(self) -> None:
        self.tell("Recall, by the conversation's id", "coach.continue_conversation(id, staff)")
        answer = self.prompt(self.continued(self.staff), ASK)
        self.verify(self.staff, ASK, answer)

    def resume_in_a_second_process(self) -> None:
        self.tell("Resume by id in a second process", "manage.py ask --conversation id", sign="$")
        process, answer = self.ask_in_a_second_process(self.staff)
        self.check("the process is another one", process != os.getpid(), True)
        self.verify(self.staff, ASK, answer, note=f"by process {process}, not {os.getpid()}")

    def resume_the_last_conversation(self) -> None:
        self.tell("Resume the last conversation", "coach.continue_last_conversation(staff)")
        answer = self.prompt(self.coach.continue_last_conversation(self.staff.owner), ASK)
        self.verify(self.staff, ASK, answer, note="found without its id")

    def keep_user_and_team_apart(self) -> None:
        user, team = self.staff.owner, self.team.owner
        self.tell(f"Keep user {user.pk} and team {team.pk} apart", "coach.for_participant(team)")
        answer = self.prompt(self.coach.for_participant(team), REMEMBER_OTHER)
        self.verify(self.team, REMEMBER_OTHER, answer, exact=STORED_OTHER)
        for minutes, exact in ((self.team, RECALLED_OTHER), (self.staff, RECALLED)):
            self.code(f"coach.continue_last_conversation({minutes.name})")
            answer = self.prompt(self.coach.continue_last_conversation(minutes.owner), ASK)
            self.verify(minutes, ASK, answer, exact=exact)
        self.code("coach.continue_conversation(id of the user's, team)")
        self.sent.requests.clear()
        try:
            self.coach.continue_conversation(self.staff.id, team).prompt(ASK)
            found = "an answer"
        except ConversationDoesNotExist:
            found = "ConversationDoesNotExist"
        self.check("the user's conversation as the team", found, "ConversationDoesNotExist")
        self.check("sent", self.sent.under(self.coach.instructions), None)
        self.passed("refused as if it did not exist; sent nothing")

    def narrow_the_window(self) -> None:
        self.tell("Send only the last turn", "coach.prompt(..., keep_last_turns=1)")
        answer = self.prompt(self.continued(self.staff), ASK, keep_last_turns=1)
        fell_out = f'{len(self.staff.said) - 2} older messages fell out, "{REMEMBER}" among them'
        self.verify(self.staff, ASK, answer, turns=1, exact=NOTHING, note=fell_out)
        self.code("coach.prompt(..., keep_last_turns=0)")
        answer = self.prompt(self.continued(self.staff), ASK, keep_last_turns=0)
        self.verify(self.staff, ASK, answer, note="all of it: a window loses nothing")

    def show_the_title(self) -> None:
        self.tell("Look at the title", "conversation_store.get(id)")
        stored = conversation_store.get(self.staff.id)
        title, source = (stored.title, stored.title_source) if stored else ("", "")
        sources = ("draft",) if self.endpoint.exact else ("draft", "prompt")
        self.check("there is a title", bool(title), True)
        self.check(f"its source, {source!r}, is one of {sources}", source in sources, True)
        drafted = "drafted by the model beside its first answer"
        self.write(f'   title  "{shorten(title, 70)}"')
        self.passed(drafted if source == "draft" else "no draft came in time: the prompt's words")

    def read_back(self) -> None:
        call = f"conversation_store.paginate_conversation_messages(id, per_page={ROWS_PER_PAGE})"
        self.tell("Read the conversation back, newest first", call)
        pages = list(self.pages(self.staff, ROWS_PER_PAGE))
        for message in pages[0]:
            self.write(f"   {message.role:<9}  {shorten(message.content, 70)}")
        rows = [Said(row.role, row.content) for page in pages for row in page]
        self.check("rows, newest first", rows, self.staff.said[::-1])
        self.check("rows on the first page", len(pages[0]), ROWS_PER_PAGE)
        self.passed(f"read {len(rows)} rows on {len(pages)} pages, as they were said")

    # What the steps do.

    def continued(self, minutes: Minutes) -> SupportCoach:
        return self.coach.continue_conversation(minutes.id, minutes.owner)

    def prompt(self, coach: SupportCoach, text: str, **options: Any) -> Answer:
        self.sent.requests.clear()
        reply = coach.prompt(text, **options)
        return Answer(reply.text, reply.conversation_id or "", self.sent.under(coach.instructions))

    def ask_in_a_second_process(self, minutes: Minutes) -> tuple[int, Answer]:
        ask = ["ask", ASK, "--conversation", minutes.id, "--json", "--model", "openai"]
        try:
            done = subprocess.run(
                [sys.executable, str(MANAGE), *ask],
                env=os.environ | self.endpoint.environment(),
                capture_output=True,
                text=True,
                timeout=PROCESS_SECONDS,
                check=True,
            )
        except subprocess.TimeoutExpired:
            raise MemoryFailed(f"no answer after {PROCESS_SECONDS} s of 'manage.py ask'") from None
        except subprocess.CalledProcessError as error:
            reason = error.stderr.strip()[-500:]
            raise MemoryFailed(f"'manage.py ask' in a second process: {reason}") from None
        answered = json.loads(done.stdout)
        sent = answered["sent"] and [Said(*said) for said in answered["sent"]]
        return answered["process"], Answer(answered["text"], answered["conversation_id"], sent)

    def pages(self, minutes: Minutes, per_page: int) -> Iterator[MessagePage]:
        cursor = None
        while True:
            page = conversation_store.paginate_conversation_messages(
                minutes.id, per_page=per_page, cursor=cursor
            )
            yield page
            if (cursor := page.next_cursor) is None:
                return

    # What is checked and told.

    def verify(
        self,
        minutes: Minutes,
        prompt: str,
        answer: Answer,
        *,
        turns: int = 0,
        exact: str = RECALLED,
        note: str = "",
    ) -> None:
        """
        Tell of one turn, and compare what was sent and stored with the minutes.

        ``turns`` is the window (0: all); ``exact`` the answer, where it can be foretold.
        """
        self.write(f"   {minutes.name:<5}  {prompt}")
        self.write(f"   coach  {shorten(answer.text, 90)}")
        asked = Said("user", prompt)
        # An empty answer, which a model may give, is stored and not sent again.
        window = [said for said in minutes.said[-2 * turns :] if said.text]
        self.check("sent", answer.sent, [*window, asked])
        if minutes.id:
            self.check("conversation", answer.conversation_id, minutes.id)
        if self.endpoint.exact:
            self.check("answer", answer.text, exact)
        minutes.id = answer.conversation_id
        minutes.said += [asked, Said("assistant", answer.text)]
        rows = [row for page in self.pages(minutes, 100) for row in page][::-1]
        self.check("stored", [Said(row.role, row.content) for row in rows], minutes.said)
        belongs = conversation_store.conversation_belongs_to(minutes.id, minutes.owner)
        self.check(f"the conversation belongs to the {minutes.name}", belongs, True)
        sent = f"sent {counted(len(window) + 1, 'message')}; stored {counted(len(rows), 'row')}"
        self.passed(f"{sent}; {note}" if note else sent)

    def check(self, what: str, found: object, expected: object) -> None:
        if found != expected:
            raise MemoryFailed(
                f"step {self.step_number}, {what}:\n  expected {told(expected)}\n"
                f"  found    {told(found)}"
            )

    def tell(self, title: str, code: str, *, sign: str = ">>>") -> None:
        self.write(f"\n{self.step_number}. {title}")
        self.code(code, sign=sign)

    def code(self, code: str, *, sign: str = ">>>") -> None:
        self.write(f"   {sign} {code}")

    def passed(self, text: str) -> None:
        self.write(f"   ok     {text}")


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def told(value: object) -> str:
    """Return a value as a failed check tells it: messages one by one."""
    if isinstance(value, list):
        said = "; ".join(f"{role}: {shorten(text, 60)}" for role, text in value)
        return f"{counted(len(value), 'message')} ({said})" if said else "no messages"
    return "nothing" if value is None else repr(value)
