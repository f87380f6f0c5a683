"""Columns that compare byte for byte on every database, and what else the rows are made of."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.contrib.contenttypes.fields import GenericForeignKey
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.db import models, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import lookups

if TYPE_CHECKING:
    _CharField = models.CharField[str, str]
    _TextField = models.TextField[str, str]
else:
    _CharField = models.CharField
    _TextField = models.TextField


def _exact(params: Any, connection: BaseDatabaseWrapper) -> Any:
    """Add the collation that pads and folds nothing; it also sets the column's character set."""
    if connection.vendor == "mysql":
        mariadb = getattr(connection, "mysql_is_mariadb", False)
        params["collation"] = "utf8mb4_nopad_bin" if mariadb else "utf8mb4_0900_bin"
    return params


class ExactCharField(_CharField):
    """Text compared byte for byte, trailing blanks included."""

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        return _exact(super().db_parameters(connection), connection)

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        # "character varying" and not "varchar", so that Django makes no second "_like" index.
        if connection.vendor == "postgresql":
            return f"character varying({self.max_length})"
        return super().db_type(connection)


class ExactTextField(_TextField):
    """Long text compared byte for byte, trailing blanks included."""

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        return _exact(super().db_parameters(connection), connection)


class _Folded:
    """Ignore case where a database leaves that to the collation, which these columns set apart."""

    def process_lhs(self, compiler: Any, connection: Any, lhs: Any = None) -> Any:
        text, params = super().process_lhs(compiler, connection, lhs)  # type: ignore[misc]  # the lookup's
        if connection.vendor == "mysql":
            text = f"{text} COLLATE utf8mb4_unicode_520_ci"
        return text, params


for _lookup in (lookups.IContains, lookups.IExact, lookups.IStartsWith, lookups.IEndsWith):
    for _field in (ExactCharField, ExactTextField):
        _field.register_lookup(type(f"Folded{_lookup.__name__}", (_Folded, _lookup), {}))


class PartialIndex(models.Index):
    """An index of the rows that ``where`` names; of all rows where the database has none such."""

    def __init__(self, *args: Any, where: models.Q, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.where = where

    def deconstruct(self) -> Any:
        path, args, kwargs = super().deconstruct()
        return path, args, {**kwargs, "where": self.where}

    def create_sql(
        self,
        model: type[models.Model],
        schema_editor: BaseDatabaseSchemaEditor,
        using: str = "",
        **kwargs: Any,
    ) -> Any:
        index = self
        if schema_editor.connection.features.supports_partial_indexes:
            index = copy.copy(self)
            index.condition = self.where
        return super(PartialIndex, index).create_sql(model, schema_editor, using, **kwargs)


class ParticipantForeignKey(GenericForeignKey):
    """
    A generic foreign key whose object is read from its own model's database.

    ``None`` stands for what is gone: an object, a model that is no longer
    installed, a key that its model cannot have.
    """

    def contribute_to_class(self, cls: type[models.Model], name: str, **kwargs: Any) -> None:  # type: ignore[override]  # the stubs name one option
        super().contribute_to_class(cls, name, **kwargs)
        # The field is its own descriptor in some versions of Django, in others it has one.
        getattr(cls, name).get_prefetch_querysets = self.get_prefetch_querysets

    def get_content_type(
        self,
        obj: models.Model | None = None,
        id: int | None = None,  # noqa: A002  as Django names it
        using: str | None = None,
        model: type[models.Model] | None = None,
    ) -> ContentType:
        if obj is not None:
            # Content types have other ids in the database that obj comes from.
            using = using or router.db_for_write(self.model)
            return super().get_content_type(model=type(obj), using=using)
        content_type = super().get_content_type(id=id, using=using, model=model)
        if id is None:
            return content_type
        content_type = copy.copy(content_type)
        owner = content_type.model_class()

        def get_object_for_this_type(using: str | None = None, *, pk: str) -> Any:  # noqa: ARG001  as Django calls it
            if owner is None or (value := _key_of(owner, str(pk))) is None:
                raise ObjectDoesNotExist
            found = _everyone(owner).get(pk=value)
            # The owner's own table may find it under other texts: in other case, say.
            if _text_of(found) != str(pk):
                raise ObjectDoesNotExist
            return found

        content_type.get_object_for_this_type = get_object_for_this_type  # type: ignore[method-assign, assignment]  # of this copy
        return content_type

    def get_prefetch_querysets(
        self, instances: Sequence[models.Model], querysets: Sequence[Any] | None = None
    ) -> Any:
        """Read the participants of many rows, in one query a model."""
        type_id = self.model._meta.get_field(self.ct_field).attname
        given = {queryset.model: queryset for queryset in querysets or ()}

        def filed(instance: models.Model) -> tuple[type[models.Model], str] | None:
            number = getattr(instance, type_id)
            if number is None:
                return None
            types = ContentType.objects.db_manager(instance._state.db)
            owner = types.get_for_id(number).model_class()
            return None if owner is None else (owner, str(getattr(instance, self.fk_field)))

        keys: dict[type[models.Model], set[Any]] = defaultdict(set)
        for owner, text in {found for row in instances if (found := filed(row)) is not None}:
            if (value := _key_of(owner, text)) is not None:
                keys[owner].add(value)
        objects = [
            obj
            for owner, values in keys.items()
            for obj in given.get(owner, _everyone(owner)).filter(pk__in=values)
        ]
        return (
            objects,
            lambda obj: (obj._meta.concrete_model, _text_of(obj)),
            filed,
            True,
            self.name,
            False,
        )


def _everyone(owner: type[models.Model]) -> models.QuerySet[Any]:
    return owner._base_manager.using(router.db_for_read(owner))


def _key_of(owner: type[models.Model], text: str) -> Any:
    """Return a text as a primary key of a model; ``None``: no object has such."""
    field: Any = owner._meta.pk
    while field.remote_field is not None:
        field = field.target_field
    try:
        value = field.to_python(text)
        field.run_validators(value)
    except (ValidationError, ValueError, TypeError):
        return None
    return value


def _text_of(obj: models.Model) -> str:
    """Return the text under which ``Participant.of()`` files an object."""
    pk: Any = obj._meta.pk
    return str(pk.to_python(obj.pk))
