"""The example's settings, with passwords that are quick to check and files that are soon too large."""

from __future__ import annotations

from example_project.settings import *  # noqa: F403  settings are modules
from example_project.settings import AGENT_MEMORY

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
AGENT_MEMORY = {**AGENT_MEMORY, "ATTACHMENTS": {"MAX_BYTES": 100_000}}
