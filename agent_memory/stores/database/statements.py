"""
Statements that the ORM compiles once per database and that are bound afterwards.

Each is built from an ordinary queryset in which ``Param("name", field)`` stands
for a value to come, so the models stay the truth about the schema. Parameters
go through ``get_db_prep_value``, results through the fields' converters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Generic, TypeVar, cast

from django.db import connections, models
from django.db.models import sql
from django.db.models.expressions import Col, Expression

T = TypeVar("T")
Row = tuple[Any, ...]


class Param(Expression):
    """A value to be bound later; it leaves itself among the compiled parameters."""

    def __init__(self, name: str, field: models.Field[Any, Any]) -> None:
        super().__init__(output_field=field)
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        return "%s", [self]

    def get_source_expressions(self) -> list[Any]:
        return []

    @property
    def identity(self) -> tuple[Any, ...]:
        return (Param, self.name)

    def __hash__(self) -> int:
        return hash(self.identity)


class Constant(Expression):
    """A text without quotes, a number or nothing, that stands in the statement itself."""

    output_field = models.TextField()

    def __init__(self, value: str | int | None) -> None:
        super().__init__()
        self.value = value

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        if self.value is None:
            return "NULL", []
        return f"'{self.value}'" if isinstance(self.value, str) else str(self.value), []

    def get_source_expressions(self) -> list[Any]:
        return []


class Compiled:
    """
    The text of a statement for one database, its parameters, the columns it gives.

    On SQLite parameters are named: for those that are not, Django looks through
    the text each time.
    """

    def __init__(
        self, using: str, text: str, params: Sequence[Any], columns: Sequence[Any] = ()
    ) -> None:
        connection = connections[using]
        self.constants: dict[str, Any] = {}
        self.fields: dict[str, tuple[models.Field[Any, Any], type | None]] = {}
        self.order = [self._name(param, place, connection) for place, param in enumerate(params)]
        self.text, self.is_named = text, connection.vendor == "sqlite"
        if self.is_named:
            names = tuple(f"%({name})s" for name in self.order)
            self.text = text.replace("%%", "%%%%") % names
        self.columns = list(columns)
        found = sql.Query(None).get_compiler(using).get_converters(self.columns)
        self.converters = [(place, *each) for place, each in found.items()]

    def _name(self, param: Any, place: int, connection: Any) -> str:
        if isinstance(param, Param):
            self.fields[param.name] = param.output_field, _verbatim(param.output_field, connection)
            return param.name
        name = f"constant_{place}"
        self.constants[name] = param
        return name

    def bind(self, values: Mapping[str, Any], connection: Any) -> dict[str, Any] | list[Any]:
        """Return the parameters; what is given for several of a type is adapted once."""
        bound = self.constants.copy()
        adapted: dict[tuple[int, type], Any] = {}
        for name, (field, verbatim) in self.fields.items():
            value = values[name]
            if value is not None and type(value) is not verbatim:
                known = id(value), type(field)
                if known not in adapted:
                    adapted[known] = field.get_db_prep_value(value, connection, prepared=False)
                value = adapted[known]
            bound[name] = value
        return bound if self.is_named else [bound[name] for name in self.order]

    def convert(self, rows: Sequence[Row], connection: Any) -> Sequence[Row]:
        """Return rows as the fields' converters give them."""
        if not self.converters:
            return rows
        converted = []
        for row in map(list, rows):
            for place, converters, expression in self.converters:
                for convert in converters:
                    row[place] = convert(row[place], expression, connection)
            converted.append(tuple(row))
        return converted


def _verbatim(field: models.Field[Any, Any], connection: Any) -> type | None:
    """Return the type whose values a field hands to the driver as they are."""
    stored: Any = getattr(field, "target_field", field)
    if isinstance(stored, models.CharField | models.TextField):
        return str
    if not isinstance(stored, models.IntegerField):
        return None
    # Some backends hand on a type of their own; MySQL refuses 0 as a key.
    return int if type(field.get_db_prep_value(1, connection, prepared=False)) is int else None


class Statement(Generic[T]):
    """Base: ``build`` makes the query when a database first needs it."""

    def __init__(self, build: Callable[[], T]) -> None:
        self.build = build
        self._compiled: dict[str, Compiled] = {}

    def compile(self, using: str) -> Compiled:
        raise NotImplementedError

    def compiled(self, using: str) -> Compiled:
        found = self._compiled.get(using)
        if found is None:
            found = self._compiled[using] = self.compile(using)
        return found


class Select(Statement["models.QuerySet[Any, Any]"]):
    """A queryset of ``values_list``."""

    def compile(self, using: str) -> Compiled:
        compiler = self.build().query.get_compiler(using)
        text, params = compiler.as_sql()
        return Compiled(using, text, params, [column[0] for column in compiler.select])

    def rows(self, using: str, **values: Any) -> Sequence[Row]:
        connection = connections[using]
        compiled = self.compiled(using)
        with connection.cursor() as cursor:
            cursor.execute(compiled.text, compiled.bind(values, connection))
            rows = cursor.fetchall()
        return compiled.convert(rows, connection)


Change = tuple["models.QuerySet[Any, Any]", dict[str, Any], tuple[str, ...]]


class Update(Statement[Change]):
    """
    A conditional update of one row: a queryset, its new values, the fields to give back.

    Values are assigned in the order given; a database that assigns one after
    the other (MariaDB, MySQL) must not find an expression that reads a column
    assigned before it.
    """

    def compile(self, using: str) -> Compiled:
        queryset, new_values, returning = self.build()
        query = cast("Any", queryset.query.chain(sql.UpdateQuery))
        query.add_update_values(new_values)
        text, params = query.get_compiler(using).as_sql()
        if not returning or not can_return(using):
            return Compiled(using, text, params)
        meta = queryset.model._meta
        columns = [Col(meta.db_table, meta.get_field(name)) for name in returning]
        quote = connections[using].ops.quote_name
        names = ", ".join(quote(str(column.target.column)) for column in columns)
        return Compiled(using, f"{text} RETURNING {names}", params, columns)

    def run(self, using: str, **values: Any) -> Row | None:
        """Return the fields asked for, or ``()`` where the database has none; ``None``: no row."""
        connection = connections[using]
        compiled = self.compiled(using)
        with connection.cursor() as cursor:
            cursor.execute(compiled.text, compiled.bind(values, connection))
            if not compiled.columns:
                return () if cursor.rowcount else None
            rows = cursor.fetchall()
        return compiled.convert(rows, connection)[0] if rows else None


Rows = tuple[type[models.Model], Sequence[Mapping[str, Any]]]


class Insert(Statement[Rows]):
    """
    Whole rows of a model at once; for each some columns may be expressions, the rest is given.

    ``apart``: the values are sent beside the statement, which suits large ones.
    """

    def __init__(
        self,
        build: Callable[[], Rows],
        *,
        apart: bool = False,
    ) -> None:
        super().__init__(build)
        self.cursor = binding_cursor if apart else usual_cursor

    @cached_property
    def gives_keys(self) -> bool:
        return _automatic(self.build()[0]) is not None

    def compile(self, using: str) -> Compiled:
        model, known = self.build()
        fields = [field for field in model._meta.concrete_fields if field is not _automatic(model)]
        rows = []
        for index, expressions in enumerate(known):
            params = {f.attname: Param(f"{f.attname}_{index}", f) for f in fields}
            rows.append(SimpleNamespace(**{**params, **expressions}))
        query = sql.InsertQuery(model)
        query.insert_values(fields, cast("Any", rows), raw=True)
        compiler = query.get_compiler(using)
        if _automatic(model) and can_return(using, inserted=True):
            compiler.returning_fields = [_automatic(model)]
        ((text, params),) = compiler.as_sql()
        return Compiled(using, text, params)

    def run(self, using: str, *rows: Mapping[str, Any], **values: Any) -> list[int]:
        """
        Write rows, given by ``attname``; return their automatic keys, if there are any.

        ``values`` are those of the expressions.
        """
        connection = connections[using]
        compiled = self.compiled(using)
        for index, row in enumerate(rows):
            values |= {f"{name}_{index}": value for name, value in row.items()}
        with self.cursor(connection) as cursor:
            cursor.execute(compiled.text, compiled.bind(values, connection))
            if not self.gives_keys:
                return []
            if can_return(using, inserted=True):
                return [row[0] for row in cursor.fetchall()]
            return list(range(cursor.lastrowid, cursor.lastrowid + len(rows)))


def _automatic(model: type[models.Model]) -> Any:
    return model._meta.auto_field


class Delete(Statement["models.QuerySet[Any, Any]"]):
    """A conditional delete that cascades nowhere."""

    def compile(self, using: str) -> Compiled:
        query = self.build().query.chain(sql.DeleteQuery)
        text, params = query.get_compiler(using).as_sql()
        return Compiled(using, text, params)

    def run(self, using: str, **values: Any) -> int:
        connection = connections[using]
        compiled = self.compiled(using)
        with connection.cursor() as cursor:
            cursor.execute(compiled.text, compiled.bind(values, connection))
            return int(cursor.rowcount)


def usual_cursor(connection: Any) -> Any:
    return connection.cursor()


def binding_cursor(connection: Any) -> Any:
    """Return a cursor that leaves its values out of the statement, also on PostgreSQL."""
    if connection.vendor != "postgresql":
        return connection.cursor()
    base: Any = import_module("django.db.backends.postgresql.base")
    if not base.is_psycopg3:
        return connection.cursor()
    connection.ensure_connection()
    cursor = base.ServerBindingCursor(connection.connection)
    wrap = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    return wrap(cursor)


def can_return(using: str, *, inserted: bool = False) -> bool:
    """Tell whether a database gives back columns of what a statement changed or inserted."""
    features = connections[using].features
    if inserted:
        return bool(features.can_return_rows_from_bulk_insert)
    return connections[using].vendor != "mysql" and bool(features.can_return_columns_from_insert)
