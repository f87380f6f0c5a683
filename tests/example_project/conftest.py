"""What the tests of the example's views share: a stand-in that answers, and who asks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client

from example_project.chat.models import Team
from example_project.endpoints import stand_in


@pytest.fixture(scope="session")
def model() -> Iterator[str]:
    with stand_in.serve() as url:
        yield url


@pytest.fixture
def project(settings, model: str) -> None:
    """The settings of a project that asks the stand-in."""
    settings.AGENT_MEMORY = {
        "MODEL": "any",
        "GENERATE_TITLES": False,
        "VERIFY_OWNERSHIP": True,
        "PROVIDER": {
            "BACKEND": "agent_memory.providers.openai_responses.OpenAIResponsesProvider",
            "OPTIONS": {"base_url": model, "api_key": "unused", "max_retries": 0},
        },
    }


@pytest.fixture
def model_is_down(project: None, settings) -> None:
    options = {"base_url": "http://127.0.0.1:9/v1", "api_key": "unused", "max_retries": 0}
    provider = {**settings.AGENT_MEMORY["PROVIDER"], "OPTIONS": options}
    settings.AGENT_MEMORY = {**settings.AGENT_MEMORY, "PROVIDER": provider}


def logged_in(name: str) -> Client:
    client = Client()
    client.force_login(User.objects.get_or_create(username=name)[0])
    return client


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def team(ada: User) -> Team:
    made = Team.objects.create(name="<b>Support</b>")
    made.members.add(ada)
    return made
