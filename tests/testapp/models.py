"""Participants of every kind of key, and of every policy for when they are deleted."""

import uuid

from django.contrib.auth.models import AbstractBaseUser
from django.db import models

from agent_memory.ownership import ANONYMISE, DELETE, HasConversations


class Team(models.Model):
    name = models.CharField(max_length=50)


class Crew(Team):
    """Is a team under another name."""

    class Meta:
        proxy = True


class Ticket(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)


class Place(models.Model):
    code = models.CharField(max_length=40, primary_key=True)


class Escalation(Ticket):
    """Has the key of its ticket, by a one-to-one field."""


class Ship(models.Model):
    number = models.AutoField(primary_key=True)


class Log(models.Model):
    """Has the key of its ticket, and is no ticket."""

    ticket = models.OneToOneField(Ticket, models.CASCADE, primary_key=True)


class Seat(models.Model):
    """Has a key of two columns."""

    pk = models.CompositePrimaryKey("ship_id", "row")
    ship = models.ForeignKey(Ship, models.CASCADE)
    row = models.IntegerField()


class Member(AbstractBaseUser):
    """A user of the project's own."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    email = models.CharField(max_length=100, unique=True)

    USERNAME_FIELD = "email"


class Club(HasConversations, models.Model):
    """Leaves its conversations behind."""

    name = models.CharField(max_length=50)


class Branch(Club):
    """Has a row and a key of its club's, and conversations of its own."""


class Patient(HasConversations, models.Model):
    """Goes with its club, and is nobody then."""

    conversations_on_delete = ANONYMISE

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    club = models.ForeignKey(Club, models.CASCADE, null=True)


class Visitor(HasConversations, models.Model):
    """Takes its conversations along."""

    conversations_on_delete = DELETE

    code = models.CharField(max_length=40, primary_key=True)


class Regular(Visitor):
    """Is a visitor under another name."""

    class Meta:
        proxy = True
