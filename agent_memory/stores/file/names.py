"""
The file of a conversation: two ids never share one, and none lies outside the folder.

An id of lower-case ASCII letters, digits, ``-`` and ``_`` is the name itself, so
that a person finds it. Any other is told by its hash, behind what is readable of
it. That holds on file systems that know no case or that normalise Unicode, too.
"""

from __future__ import annotations

import re
from hashlib import sha256

SUFFIX = ".jsonl"

PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
DEVICE = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")
"""What Windows takes for a device, whatever its suffix."""


def file_name(conversation_id: str) -> str:
    """Return the name of a conversation's file; only the plain form has a single dot."""
    if PLAIN.fullmatch(conversation_id) and not DEVICE.fullmatch(conversation_id):
        return conversation_id + SUFFIX
    readable = re.sub(r"[^a-z0-9]+", "-", conversation_id[:40].lower()).strip("-")
    return f"{readable or 'id'}.{sha256(conversation_id.encode()).hexdigest()}{SUFFIX}"
