"""Conversations that the admin's tests read, made by ``Site.seed()`` in the example project."""

from __future__ import annotations

from typing import Any


def rich(name: str, key: str) -> str:
    return _talks().rich(_user(name), key=key)


def hostile(name: str, key: str) -> str:
    return _talks().hostile(_user(name), key=key)


def long(name: str, key: str, turns: int) -> str:
    return _talks().long(_user(name), turns, key=key)


def _talks() -> Any:
    from tests.admin import talks

    return talks


def _user(name: str) -> Any:
    from django.contrib.auth.models import User

    return User.objects.get(username=name)
