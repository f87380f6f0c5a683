"""A participant is a type and a key, taken from a saved instance or given."""

from __future__ import annotations

import uuid
from types import SimpleNamespace

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import AnonymousUser, User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.functional import SimpleLazyObject

from agent_memory.exceptions import InvalidParticipant, ParticipantDoesNotExist
from agent_memory.participants import Participant
from tests.testapp.models import Crew, Escalation, Log, Member, Place, Seat, Ship, Team, Ticket


def saved(instance):
    instance._state.adding = False
    return instance


def test_nobody_and_a_ready_participant_are_taken_as_they_are():
    assert Participant.of(None) is None
    ready = Participant("auth.user", "7")
    assert Participant.of(ready) is ready


def test_type_and_key_make_a_participant_together():
    assert Participant("auth.user", "1") == Participant("auth.user", "1")
    assert Participant("auth.user", "1") != Participant("auth.group", "1")
    assert Participant("auth.user", "1") != Participant("auth.user", "01")


def test_a_saved_instance_is_its_model_and_the_text_of_its_key():
    key = uuid.uuid4()
    assert Participant.of(saved(User(pk=7))) == Participant("auth.user", "7")
    assert Participant.of(saved(Team(pk=7))) == Participant("testapp.team", "7")
    assert Participant.of(saved(Ticket(pk=key))) == Participant("testapp.ticket", str(key))
    assert Participant.of(saved(Place(pk=" Ä "))) == Participant("testapp.place", " Ä ")


def test_a_key_is_the_same_however_it_was_written():
    key = uuid.uuid4()
    assert Participant.of(saved(Ticket(pk=key.hex))) == Participant("testapp.ticket", str(key))
    assert Participant.of(saved(User(pk="7"))) == Participant("auth.user", "7")
    assert Participant.of(saved(User(pk=0))) == Participant("auth.user", "0")


def test_a_proxy_is_its_concrete_model():
    assert Participant.of(saved(Crew(pk=7))) == Participant("testapp.team", "7")


def test_a_child_of_a_concrete_model_is_itself_and_its_parent_another():
    key = uuid.uuid4()
    escalation = saved(Escalation(pk=key))
    assert Participant.of(escalation) == Participant("testapp.escalation", str(key))
    assert Participant.of(saved(Ticket(pk=key))) == Participant("testapp.ticket", str(key))


def test_a_key_may_have_any_name():
    assert Participant.of(saved(Ship(number=7))) == Participant("testapp.ship", "7")


def test_a_user_of_the_projects_own_is_one_like_any_other():
    member = saved(Member(email="ada@example.com"))
    assert Participant.of(member) == Participant("testapp.member", str(member.pk))


def test_a_key_that_is_a_relation_is_the_key_behind_it():
    key = uuid.uuid4()
    log = saved(Log(ticket=saved(Ticket(pk=key))))
    assert Participant.of(log) == Participant("testapp.log", str(key))


def test_a_key_of_several_columns_is_refused_with_the_remedy():
    with pytest.raises(InvalidParticipant, match=r'Participant\("testapp.seat", "text that'):
        Participant.of(saved(Seat(ship_id=1, row=2)))


def test_a_lazy_user_is_the_user():
    lazy = SimpleLazyObject(lambda: saved(User(pk=7)))
    assert Participant.of(lazy) == Participant("auth.user", "7")


@pytest.mark.parametrize("anonymous", [AnonymousUser(), SimpleLazyObject(AnonymousUser)])
def test_an_anonymous_user_is_refused_with_the_remedy(anonymous):
    with pytest.raises(InvalidParticipant, match=r"for_participant\(None\)"):
        Participant.of(anonymous)


@pytest.mark.parametrize("unsaved", [User(), User(pk=7), Ticket(), saved(User())])
def test_an_unsaved_instance_is_refused_with_the_remedy(unsaved):
    with pytest.raises(InvalidParticipant, match=r"This (User|Ticket) is not saved.*save it first"):
        Participant.of(unsaved)


@pytest.mark.parametrize(
    "other", [7, "7", ("auth.user", "7"), User, Participant, object(), SimpleNamespace(id=7), {}]
)
def test_anything_else_is_refused_with_the_remedy(other):
    with pytest.raises(InvalidParticipant, match="saved model instance"):
        Participant.of(other)


@pytest.mark.parametrize("text", ["", "x" * 256, "a\0", "\ud800", 7, None])
def test_type_and_key_are_text_that_every_store_can_hold(text):
    with pytest.raises(InvalidParticipant, match="participant's type"):
        Participant(text, "1")
    with pytest.raises(InvalidParticipant, match="participant's key"):
        Participant("auth.user", text)
    with pytest.raises(ValueError, match="participant"):
        Participant("auth.user", text)


def test_255_characters_of_any_alphabet_are_a_key():
    key = "\U0001f600" * 255
    assert Participant("auth.user", key).key == key


@pytest.mark.django_db
def test_a_participant_leads_back_to_its_instance():
    for instance in (
        User.objects.create(username="ada"),
        Ticket.objects.create(),
        Place.objects.create(code=" Ä "),
        Escalation.objects.create(),
        Ship.objects.create(),
        Member.objects.create(email="ada@example.com"),
        Log.objects.create(ticket=Ticket.objects.create()),
    ):
        participant = Participant.of(instance)
        assert participant.get_object() == instance
        assert async_to_sync(participant.aget_object)() == instance


@pytest.mark.django_db
def test_what_was_not_loaded_does_not_matter():
    ada = User.objects.create(username="ada")
    deferred = User.objects.defer("username").get()
    with CaptureQueriesContext(connection) as captured:
        assert Participant.of(deferred) == Participant.of(ada)
    assert not captured.captured_queries


@pytest.mark.django_db
def test_an_instance_that_was_deleted_is_refused_with_the_remedy():
    ada = User.objects.create(username="ada")
    ada.delete()
    with pytest.raises(InvalidParticipant, match=r'was deleted.*is still a Participant\("app_l'):
        Participant.of(ada)


@pytest.mark.django_db
@pytest.mark.parametrize("awkward", ["kiel", "Kiel ", " Kiel", "KIEL", "Ki\u00e9l"])
def test_a_text_key_leads_back_to_the_very_same_text_only(awkward):
    Place.objects.create(code="Kiel")
    with pytest.raises(ParticipantDoesNotExist):
        Participant("testapp.place", awkward).get_object()


@pytest.mark.django_db
@pytest.mark.parametrize("written", ["07", " 7", "7.0", "+7"])
def test_a_number_that_is_written_otherwise_is_another_participant(written):
    User.objects.create(pk=7, username="ada")
    assert Participant("auth.user", written) != Participant("auth.user", "7")
    with pytest.raises(ParticipantDoesNotExist):
        Participant("auth.user", written).get_object()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "participant",
    [
        Participant("auth.user", "7"),
        Participant("auth.user", "9" * 30),
        Participant("auth.user", "ada"),
        Participant("testapp.ticket", "7"),
        Participant("testapp.seat", "(1, 2)"),
        Participant("testapp.removed", "7"),
        Participant("removed.user", "7"),
        Participant("robot", "7"),
    ],
    ids=lambda participant: f"{participant.type} {participant.key}",
)
def test_a_participant_whose_row_or_model_is_gone_says_so(participant):
    with pytest.raises(ParticipantDoesNotExist, match=f"There is no {participant.type} with"):
        participant.get_object()
    with pytest.raises(ParticipantDoesNotExist):
        async_to_sync(participant.aget_object)()
