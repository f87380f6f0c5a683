"""Columns that compare byte for byte on every database, and what else the rows are made of."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from django.contrib.contenttypes.fields import GenericForeignKey
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ObjectDoesNotExist
from django.db import models, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

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
    """A generic foreign key whose object is read from its own model's database."""

    def get_content_type(
        self,
        obj: models.Model | None = None,
        id: int | None = None,  # noqa: A002
        using: str | None = None,
        model: type[models.Model] | None = None,
    ) -> ContentType:
        content_type = super().get_content_type(obj=obj, id=id, using=using, model=model)
        if id is None:
            return content_type
        content_type = copy.copy(content_type)
        owner = content_type.model_class()

        def get_object_for_this_type(using: str | None = None, **lookup: Any) -> models.Model:  # noqa: ARG001
            if owner is None:
                raise ObjectDoesNotExist
            return owner._base_manager.using(router.db_for_read(owner)).get(**lookup)

        content_type.get_object_for_this_type = get_object_for_this_type  # type: ignore[method-assign]
        return content_type
