"""Fixtures of the admin's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.test import Client

from tests.admin.acting import ACTIONS, staff


@pytest.fixture
def ann(db: None) -> User:
    return User.objects.create_user("ann")


@pytest.fixture
def customers() -> Iterator[ContentType]:
    """Make the content type of a model that is not installed."""
    yield ContentType.objects.create(app_label="shop", model="customer")
    ContentType.objects.clear_cache()


@pytest.fixture
def manager(client: Client) -> Client:
    """Return the client of a member of staff who may do all there is to do."""
    staff(client, "view_conversation", *(f"{action}_conversation" for action in ACTIONS))
    return client


@pytest.fixture
def decider(client: Client) -> Client:
    """Return the client of a member of staff who reads conversations and decides on calls."""
    staff(
        client,
        "view_conversation",
        "view_conversationmessage",
        "view_toolapproval",
        "decide_toolapproval",
    )
    return client
