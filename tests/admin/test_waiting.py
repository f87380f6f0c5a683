"""What a conversation waits for, on its page in the admin."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agent_memory.admin.waiting import waiting_on
from agent_memory.models import Conversation
from tests.admin.calls import PAY, pause, url_of
from tests.admin.saying import conversation_page, talk

pytestmark = pytest.mark.django_db


def test_the_transcript_has_the_form_and_it_decides(decider: Client) -> None:
    one, two = pause("one", PAY, PAY)
    page = decider.get(conversation_page("one"))
    waiting = page.context["waiting"]
    assert [form.approval for form in waiting.forms.calls] == [one, two]
    assert waiting.url == url_of(one, two)
    assert f"call-{one.pk}-decision" in page.content.decode()


def test_what_a_conversation_waits_for_is_one_query_for_any_number_of_calls(
    rf: Any, django_assert_num_queries: Any
) -> None:
    pause("one", *[PAY] * 8)
    request = rf.get("/")
    request.user = User.objects.create_superuser("root")
    conversation = Conversation.objects.get()
    with django_assert_num_queries(1):
        waiting = waiting_on(request, conversation)
    assert waiting is not None
    assert len(waiting.forms.calls) == 8


def test_a_conversation_that_waits_for_nobody_has_no_form(decider: Client) -> None:
    talk("one")
    assert decider.get(conversation_page("one")).context["waiting"] is None
