"""Participants of every kind of key."""

import uuid

from django.db import models


class Team(models.Model):
    name = models.CharField(max_length=50)


class Ticket(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)


class Place(models.Model):
    code = models.CharField(max_length=40, primary_key=True)


class Escalation(Ticket):
    """Has the key of its ticket, by a one-to-one field."""
