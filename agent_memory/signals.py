"""
Signals of conversations, sent robustly: a receiver that raises undoes nothing.

The sender is the agent's class, or the store's class for what no agent did.
Those of a turn are sent after its transaction has ended.

- ``conversation_created``: ``conversation_id``, ``participant``
- ``turn_completed``, ``turn_failed``: ``conversation_id``, ``turn``, ``stored``
  (a ``StoredTurn``)
- ``approval_requested``: ``conversation_id``, ``pending``
- ``approval_decided``: ``conversation_id``, ``approval`` (an ``Approval``)
- ``conversation_cleared``: ``conversation_id``
"""

from django.dispatch import Signal

conversation_created = Signal()
turn_completed = Signal()
turn_failed = Signal()
approval_requested = Signal()
approval_decided = Signal()
conversation_cleared = Signal()
