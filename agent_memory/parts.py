"""What a message is made of: text, refusals, images and documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

_new: Any = object.__new__

FILE_SOURCES = ("data", "url", "file_id")


class Value(BaseModel):
    """A frozen value that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    if not TYPE_CHECKING:  # else any name would be an attribute

        def __getattr__(self, name: str) -> Any:
            """Answer for what ``trusting()`` leaves unset, of which a value of all fields has none."""
            if name in ("__pydantic_extra__", "__pydantic_private__"):
                return None
            if name == "__pydantic_fields_set__":
                return {*type(self).model_fields}
            return super().__getattr__(name)


V = TypeVar("V")


def trusting(kind: type[V]) -> Callable[..., V]:
    """
    Return what makes values of all their fields, which are valid already: nothing is looked at.

    It is ``model_construct()`` without defaults, and costs less than validating. It also
    makes values of a dataclass that has no slots.
    """
    place: Any = next(vars(each)["__dict__"] for each in kind.__mro__ if "__dict__" in vars(each))
    put = place.__set__

    def make(**fields: Any) -> V:
        value: V = _new(kind)
        put(value, fields)
        return value

    return make


class _Said(Value):
    text: str

    @property
    def size(self) -> int:
        """The bytes of the text in UTF-8."""
        return len(self.text.encode("utf-8", "surrogatepass"))


class TextPart(_Said):
    """Text that somebody wrote or a model answered."""

    type: Literal["text"] = "text"
    provider_options: dict[str, JsonValue] = Field(default_factory=dict)
    provider_metadata: dict[str, JsonValue] = Field(default_factory=dict)


_text_part = trusting(TextPart)


def plain_text(text: str) -> TextPart:
    """Return a part of a ``str``, which is not looked at."""
    return _text_part(text=text, type="text", provider_options={}, provider_metadata={})


class RefusalPart(_Said):
    """What a model said instead of answering."""

    type: Literal["refusal"] = "refusal"


class FilePart(Value):
    """
    A file: its ``data``, or where the provider finds it (``url`` or ``file_id``).

    It has exactly one of the three. ``media_type`` is that of the content, such
    as ``image/png``.
    """

    data: Annotated[bytes, Field(strict=True)] | None = None
    url: str | None = None
    file_id: str | None = None
    media_type: str = ""
    file_name: str = ""
    provider_options: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        given = [name for name in FILE_SOURCES if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"a file has exactly one of {', '.join(FILE_SOURCES)}, not "
                f"{' and '.join(given) or 'none'}"
            )
        return self

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Tell how much ``data`` there is, and not what: logs and tracebacks show it."""
        for name, value in super().__repr_args__():
            yield name, f"<{self.size} bytes>" if name == "data" and self.data else value

    @property
    def size(self) -> int:
        """The bytes of ``data``; 0 where the provider has them."""
        return len(self.data or b"")

    @property
    def sha256(self) -> str:
        """The hash of ``data`` in hex, computed once; that of nothing where the provider has it."""
        data, digest = self.hashed
        return digest if data is self.data else _hex(self.data)

    @cached_property
    def hashed(self) -> tuple[bytes | None, str]:
        """What was hashed, and its hash: a copy with other ``data`` brings this along."""
        return self.data, _hex(self.data)


def _hex(data: bytes | None) -> str:
    return sha256(data or b"").hexdigest()


class ImagePart(FilePart):
    """A picture."""

    type: Literal["image"] = "image"


class DocumentPart(FilePart):
    """A document, such as a PDF."""

    type: Literal["document"] = "document"


Part = Annotated[TextPart | RefusalPart | ImagePart | DocumentPart, Field(discriminator="type")]


def check_provider_options(parts: Iterable[Part]) -> None:
    """Raise ``ValueError`` for ``provider_options`` that are no JSON in every store and request."""
    for part in parts:
        if isinstance(part, TextPart | FilePart) and part.provider_options:
            try:
                json.dumps(part.provider_options, allow_nan=False)
            except ValueError:
                raise ValueError(
                    "provider_options hold a number that JSON has no form for: NaN, an infinity, "
                    "or an integer of more than 4300 digits."
                ) from None
