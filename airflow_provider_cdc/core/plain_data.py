# SPDX-License-Identifier: Apache-2.0
"""Turn dataclasses into plain JSON data and back, by the types of their fields: no document is written by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, NamedTuple, Self, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
Convert = Callable[[Any], Any]
_KIND = "kind"  # names the dataclass, where a field may have one of several


class Document:
    """A dataclass with a plain form."""

    __slots__ = ()

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return to_plain(self)

    @classmethod
    def from_document(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`document`: missing members have their defaults, unknown ones are left out."""
        return from_plain(cls, data)


def to_plain(item: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as plain JSON data; what is plain already is not copied."""
    plan = _plan(type(item))
    data = {name: getattr(item, name) for name in plan.names}
    for name, write in plan.writes.items():
        data[name] = write(data[name])
    return data


def from_plain(kind: type[T], data: Mapping[str, Any]) -> T:
    """Rebuild a dataclass from :func:`to_plain`.

    :param data: missing members have their defaults, unknown ones are left out.
    :raises TypeError: a member without a default is missing.
    """
    plan = _plan(kind)
    values = {name: value for name, value in data.items() if name in plan.names}
    for name, read in plan.reads.items():
        if name in values:
            values[name] = read(values[name])
    return kind(**values)


class _Plan(NamedTuple):
    """The fields of a dataclass, and what writes and reads those that are not plain."""

    names: dict[str, None]
    writes: dict[str, Convert]
    reads: dict[str, Convert]


_PLANS: dict[type[Any], _Plan] = {}


class _Form(NamedTuple):
    """Hold what turns values of a type into plain data and back; None where they are plain."""

    write: Convert | None = None
    read: Convert | None = None


def _plan(kind: type[Any]) -> _Plan:
    """Return the plan of a dataclass, made once."""
    if kind not in _PLANS:
        _PLANS[kind] = _planned(kind)
    return _PLANS[kind]


def _planned(kind: type[Any]) -> _Plan:
    hints = get_type_hints(kind)
    forms = {field.name: _form(hints[field.name]) for field in fields(kind)}
    return _Plan(
        dict.fromkeys(forms),
        {name: form.write for name, form in forms.items() if form.write is not None},
        {name: form.read for name, form in forms.items() if form.read is not None},
    )


def _form(hint: Any) -> _Form:
    """Return the form of a type: of dataclasses and enumerations, in lists and tuples, and of what may be None."""
    origin, members = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _optional([member for member in members if member is not NoneType])
    if origin is list:
        write, read = _form(members[0])
        return _Form(_of_each(write), _of_each(read))
    if origin is tuple and members[-1] is Ellipsis:
        write, read = _form(members[0])
        return _Form(_of_each(write), lambda items: tuple(items if read is None else map(read, items)))
    if origin is tuple:
        return _Form(read=tuple) if all(_form(member) == _Form() for member in members) else _pairs(members)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _Form(read=hint)
    if isinstance(hint, type) and is_dataclass(hint):
        if hasattr(hint, "from_document"):
            return _Form(lambda item: item.document(), hint.from_document)
        return _Form(to_plain, lambda data: from_plain(hint, data))
    return _Form()


def _of_each(convert: Convert | None) -> Convert | None:
    if convert is None or convert is tuple:  # pairs of plain values stay lists
        return None
    return lambda items: [convert(item) for item in items]


def _pairs(members: tuple[Any, ...]) -> _Form:
    """Return the form of a tuple with a type for each place."""
    forms = [_form(member) for member in members]
    writes, reads = [form.write or _same for form in forms], [form.read or _same for form in forms]
    return _Form(
        lambda items: [write(item) for write, item in zip(writes, items, strict=True)],
        lambda items: tuple(read(item) for read, item in zip(reads, items, strict=True)),
    )


def _same(value: Any) -> Any:
    return value


def _optional(members: list[Any]) -> _Form:
    """Return the form of what may be None, or one of several dataclasses."""
    if len(members) > 1 and all(map(is_dataclass, members)):
        kinds = {member.__name__: member for member in members}
        return _Form(
            lambda item: None if item is None else {_KIND: type(item).__name__, **to_plain(item)},
            lambda data: None if data is None else from_plain(kinds[data[_KIND]], data),
        )
    form = _form(members[0]) if len(members) == 1 else _Form()
    return _Form(_unless_none(form.write), _unless_none(form.read))


def _unless_none(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda value: None if value is None else convert(value)
