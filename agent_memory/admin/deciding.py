"""The form in which a person decides on tool calls that wait, and what becomes of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext_lazy as _

from agent_memory.admin.showing import cut, json_text
from agent_memory.approvals import Approve, Decision, Deny, Edit
from agent_memory.exceptions import ApprovalMismatch
from agent_memory.models import Conversation, ToolApproval
from agent_memory.stores.database import DatabaseConversationStore
from agent_memory.stores.database.retrying import retried

MAX_EDITED = 50_000
"""Characters of arguments that are edited in a form; Django takes forms of 2.5 MB by default."""

LATER, APPROVE, EDIT, DENY = "", "approve", "edit", "deny"
CHOICES = (
    (LATER, _("Decide later")),
    (APPROVE, _("Approve")),
    (EDIT, _("Approve with other arguments")),
    (DENY, _("Deny")),
)


def parsed(text: str) -> dict[str, Any]:
    """Return the arguments that JSON tells; raises ``ValidationError`` unless it is an object."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON.")

    try:
        found = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise forms.ValidationError(
            _("This is no JSON: %(error)s"), params={"error": error}
        ) from error
    if not isinstance(found, dict):
        raise forms.ValidationError(_('Arguments are a JSON object, such as {"name": "value"}.'))
    return found


class CallForm(forms.Form):
    """One tool call that waits, and what somebody decides on it: ``made``, or nothing yet."""

    decision = forms.ChoiceField(
        label=_("Decision"), choices=CHOICES, required=False, widget=forms.RadioSelect
    )
    arguments = forms.CharField(
        label=_("Other arguments"),
        help_text=_("A JSON object. The tool runs with these, all of them, and the model is told."),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false"}),
    )
    denial = forms.CharField(
        label=_("Reason to deny"),
        help_text=_("The model is told, and goes on. Without one the turn may end here."),
        required=False,
    )

    def __init__(self, approval: ToolApproval, data: Mapping[str, Any] | None = None) -> None:
        self.approval = approval
        self.made: Decision | None = None
        try:
            self.asked: dict[str, Any] | None = json.loads(approval.asked)
            self.text = json_text(self.asked["arguments"])
        except (ValueError, KeyError, TypeError, RecursionError):
            self.asked, self.text = None, approval.asked
        super().__init__(data, prefix=f"call-{approval.pk}", initial={"arguments": self.text})
        if self.asked is None:
            self.fields.clear()
        elif len(self.text) > MAX_EDITED:
            del self.fields["arguments"]
            decision: Any = self.fields["decision"]
            decision.choices = [one for one in CHOICES if one[0] != EDIT]

    @property
    def shown(self) -> str:
        """The arguments, as much of them as a page shows."""
        return cut(self.text)

    def clean_arguments(self) -> dict[str, Any] | None:
        """Return other arguments than those that were asked for, where somebody wrote some."""
        text = self.cleaned_data["arguments"].replace("\r\n", "\n").strip()
        decision = self.cleaned_data.get("decision")
        if decision not in (APPROVE, EDIT) or text == self.text or (not text and decision != EDIT):
            return None
        arguments = parsed(text)
        assert self.asked is not None
        return None if _same(arguments, self.asked["arguments"]) else arguments

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        decision, arguments = cleaned.get("decision"), cleaned.get("arguments")
        if self.errors:
            return cleaned
        if decision == DENY:
            self.made = Deny(cleaned["denial"])
        elif decision == APPROVE and arguments is not None:
            self.add_error(
                "decision",
                _("You changed the arguments: approve with those, or put the first ones back."),
            )
        elif decision in (APPROVE, EDIT):
            self.made = Approve() if arguments is None else Edit(arguments)
        return cleaned


class NoteForm(forms.Form):
    """What is kept with all decisions of a form."""

    note = forms.CharField(
        label=_("Note"),
        help_text=_("Kept with the decision; the model is not told."),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
    )


class DecisionForms:
    """The forms of some calls that wait, in any conversations, and the note on all of them."""

    def __init__(
        self, approvals: Iterable[ToolApproval], data: Mapping[str, Any] | None = None
    ) -> None:
        self.calls = [CallForm(approval, data) for approval in approvals]
        self.note = NoteForm(data)

    def is_valid(self) -> bool:
        """Tell whether all is well and something is decided; errors are on the forms."""
        valid = [form.is_valid() for form in (*self.calls, self.note)]
        if not all(valid):
            return False
        if not any(form.made for form in self.calls):
            self.note.add_error(None, _("Decide on one call at least."))
        return self.note.is_valid()

    def by_conversation(self) -> dict[str, list[CallForm]]:
        """Return the forms in which something is decided, by the conversation of their call."""
        found: dict[str, list[CallForm]] = {}
        for form in self.calls:
            if form.made is not None:
                found.setdefault(form.approval.message.conversation_id, []).append(form)
        return found


def settle(
    store: DatabaseConversationStore,
    conversation_id: str,
    decided: list[CallForm],
    *,
    decided_by: Any,
    note: str,
) -> int:
    """
    Settle calls of one conversation, all or none; return how many of it wait still.

    Raises as ``store.decide()`` does, and ``ApprovalMismatch`` when what was seen waits no
    more, although something else may under the same ids: they recur from pause to pause.
    """
    using = store.writing
    made = {form.asked["id"]: form.made for form in decided if form.asked and form.made}
    seen = ToolApproval.objects.using(using).filter(pk__in=[form.approval.pk for form in decided])

    def work() -> int:
        with transaction.atomic(using):
            _lock(using, conversation_id)
            if seen.waiting().count() != len(made):
                raise ApprovalMismatch("What was seen waits no more.")
            return len(store.decide(conversation_id, made, decided_by=decided_by, note=note))

    return retried(using, work)


def _lock(using: str, conversation_id: str) -> None:
    """Let nobody else change a conversation until the transaction ends, as decide() does."""
    found = Conversation.objects.using(using).filter(pk=conversation_id)
    found.update(undecided_count=F("undecided_count"))


def _same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same JSON; to Python 1 and true are."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
