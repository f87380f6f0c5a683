"""What the chat's page posts."""

from __future__ import annotations

from django import forms


class RenameForm(forms.Form):
    title = forms.CharField(max_length=255, error_messages={"required": "A title needs a word."})


class AskForm(forms.Form):
    """
    A message: a text, files, or both; ``key`` makes it one turn, however often it is posted.

    It goes to a ``conversation``, or else opens one of the ``owner``.
    """

    text = forms.CharField(required=False)
    key = forms.UUIDField()
    conversation = forms.CharField(required=False, max_length=255)
    owner = forms.CharField(required=False)

    def clean(self) -> None:
        if not (self.cleaned_data.get("text", True) or self.files.getlist("files")):
            raise forms.ValidationError("Write something, or attach a file.")


class DecideForm(forms.Form):
    """What becomes of a tool call that waits; without a ``call`` the turn is just gone on with."""

    conversation = forms.CharField(max_length=255)
    call = forms.CharField(required=False, max_length=255, strip=False)
    decision = forms.ChoiceField(
        required=False, choices=[("approve", "Approve"), ("deny", "Do not allow")]
    )
    note = forms.CharField(required=False, max_length=1000)

    def clean(self) -> None:
        if self.cleaned_data.get("call") and not self.cleaned_data.get("decision", True):
            raise forms.ValidationError("Approve it, or do not allow it.")
