# SPDX-License-Identifier: Apache-2.0
"""Write row images of Tencent DTS: values of many rows, in columns, to JSON object texts.

Values: docs/wire/tencent-dts.md 3.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.formats.common.json_writer import escaped, special_places
from airflow_provider_cdc.core.formats.dts.columns import HEADS, Carrier, ColumnTables
from airflow_provider_cdc.core.formats.dts.values import UNKNOWN, Values, data_of, holders_of, offsets_of
from airflow_provider_cdc.core.formats.generated.dts_pb2 import DataType
from airflow_provider_cdc.core.values.fields import ConversionError
from airflow_provider_cdc.core.values.shared.charsets import decoder, is_utf8

# what is to be done with a value
NUMERAL, TEXT, _BASE64, _JSON, NULL, _REFUSE = range(6)


def _actions() -> Any:
    """Return what is done with a value of each DataType in a column of each carrier; the last row is of unknown ones.

    The value's own type decides, and must be one that the column's type can have (docs/wire/tencent-dts.md 3).
    """
    actions: Any = np.full((UNKNOWN + 1, len(Carrier)), _REFUSE, np.int8)
    numbers = [Carrier.NUMBER, Carrier.UNSIGNED, Carrier.OTHER]
    numeric = set(DataType.values()) - {DataType.NIL, DataType.NA, DataType.STRING, DataType.BYTES}
    actions[np.ix_(sorted(numeric), numbers)] = NUMERAL
    actions[DataType.STRING, [Carrier.TEXT, Carrier.TIMESTAMP, *numbers]] = TEXT
    for bytes_or_text in (DataType.STRING, DataType.BYTES):
        actions[bytes_or_text, Carrier.BYTES] = _BASE64
        actions[bytes_or_text, Carrier.JSON] = _JSON
    actions[DataType.NIL] = NULL
    return actions


ACTIONS = _actions()
_encode = msgspec.json.Encoder().encode


def no_numeral(data: Any) -> Any:
    """Return the places of bytes that no number has."""
    signs_and_digits = (data >= ord("+")) & (data <= ord("9")) & (data != ord(",")) & (data != ord("/"))
    return np.flatnonzero(~(signs_and_digits | (data == ord("e")) | (data == ord("E"))))


class Problem(NamedTuple):
    """Code and message of a row that is refused."""

    code: str
    message: str


_WRONG_TYPE = Problem("value.wrong_type", "a value's type is none that its column can have")
_MALFORMED = Problem("value.malformed", "a value is not what its type says")
_NEGATIVE = Problem("value.malformed", "a negative number in an unsigned column")
_NO_TEXT = Problem("value.not_text", "a text is not valid in its character set, or the character set is unknown")
_NO_JSON = Problem("value.not_json", "a JSON value is not a JSON text: MySQL's binary form is not read")


class ImageWriter:
    """Write images of values.

    :param values: what there is to choose from.
    :param selected: the values to write, image after image.
    :param starts: index in ``selected`` of each image's first value, and at the end its length.
    :param columns: column of each chosen value, in ``tables``.
    :param utc: whether TIMESTAMP texts are in UTC, so that one which says so means the same without.
    """

    def __init__(
        self, values: Values, selected: Any, starts: Any, columns: Any, tables: ColumnTables, *, utc: bool
    ) -> None:
        self._values, self._selected, self._starts, self._columns, self._tables = (
            values,
            selected,
            starts,
            columns,
            tables,
        )
        self._utc = utc
        # most often all values are chosen, as they are: then columns of values need not be rearranged
        self._all = np.array_equal(selected, np.arange(len(values)))
        self._carriers = tables.carriers.take(columns)
        self._actions = ACTIONS.ravel().take(self._of(values.kinds) * len(Carrier) + self._carriers)
        self._charsets = self._of(values.charsets.indices.to_numpy())
        # texts are put together from pieces: numerals, contents, heads, and what is made here
        self._contents = values.contents
        self._made = [pa.array([b"", b'"}', b"}"])]
        self._first_made = 2 * len(values) + len(tables.heads)
        self._next_made = self._first_made + len(self._made[0])
        self._pieces: Any = np.where(self._actions == NUMERAL, selected, selected + len(values))
        self.problems: dict[int, Problem] = {}  # by image

    def write(self) -> pa.Array:
        """Return the images, null where there is no value; those with a problem are not to be used."""
        if not len(self._selected):
            return pa.nulls(len(self._starts) - 1, pa.string())
        self._pieces[self._actions == NULL] = self._first_made
        self._refuse(np.flatnonzero(self._actions == _REFUSE), _WRONG_TYPE)
        self._check_sizes()
        self._check_numerals()
        self._texts()
        self._each(self._actions == _BASE64, lambda charset: partial(b2a_base64, newline=False), _MALFORMED)
        self._each(self._actions == _JSON, _json, _NO_JSON)
        return self._joined()

    def _of(self, values: Any) -> Any:
        """Return what is given for each value for each chosen one."""
        return values if self._all else values[self._selected]

    def _refuse(self, cells: Any, problem: Problem) -> None:
        images: list[int] = np.atleast_1d(np.searchsorted(self._starts, cells, "right")).tolist()
        for image in images:
            self.problems.setdefault(image - 1, problem)

    def _check_sizes(self) -> None:
        numerals = self._of(np.diff(offsets_of(self._values.numerals)))
        contents = self._of(np.diff(offsets_of(self._values.contents)))
        is_numeral = self._actions == NUMERAL
        wrong = (numerals > 0) != is_numeral
        wrong |= (contents > 0) & (is_numeral | (self._actions == NULL))
        self._refuse(np.flatnonzero(wrong & (self._actions != _REFUSE)), _MALFORMED)

    def _check_numerals(self) -> None:
        offsets, data = offsets_of(self._values.numerals), data_of(self._values.numerals)
        numerals = np.flatnonzero((self._actions == NUMERAL) & (self._of(offsets[:-1]) < len(data)))
        odd = no_numeral(data)
        if len(odd):
            self._refuse(numerals[holders_of(offsets, odd)[self._selected[numerals]]], _MALFORMED)
        unsigned = numerals[self._carriers[numerals] == Carrier.UNSIGNED]
        self._refuse(unsigned[data[offsets[self._selected[unsigned]]] == ord("-")], _NEGATIVE)

    def _texts(self) -> None:
        texts = self._actions == TEXT
        plain = np.array([is_plain(charset) for charset in self._values.charsets.dictionary.to_pylist()], bool)
        foreign = texts & ~plain[self._charsets]
        self._each(foreign, _quoted, _NO_TEXT)
        texts &= ~foreign
        if self._utc:
            stated = texts & (self._carriers == Carrier.TIMESTAMP)
            stated[stated] = self._end_in_utc(self._selected[stated])
            self._each(stated, _without_zone, _NO_TEXT)
            texts &= ~stated
        if (self._actions == _BASE64).any():  # bytes have so much to escape that it is done for texts alone
            special = holders_of(offsets_of(self._values.contents), special_places(data_of(self._values.contents)))
            self._escape(texts & special[self._selected])
        else:
            self._contents = _escaped(self._values.contents)

    def _end_in_utc(self, values: Any) -> Any:
        offsets, data = offsets_of(self._values.contents), data_of(self._values.contents)
        signs = offsets[values + 1] - len("+00:00")
        has_sign = signs >= offsets[values]
        has_sign[has_sign] = data[signs[has_sign]] == ord("+")
        return has_sign

    def _escape(self, which: Any) -> None:
        """Make the texts between quotes of some values in UTF-8."""
        cells = np.flatnonzero(which)
        if not len(cells):
            return
        self._put(cells, _escaped(self._values.contents.take(pa.array(self._selected[cells]))))

    def _put(self, cells: Any, made: pa.Array) -> None:
        self._pieces[cells] = np.arange(len(made)) + self._next_made
        self._made.append(made)
        self._next_made += len(made)

    def _each(self, which: Any, converter: Callable[[str], Callable[[bytes], bytes]], problem: Problem) -> None:
        """Make the texts between quotes of some values one by one.

        :param converter: gives for a character set what makes them.
        """
        if not which.any():
            return
        names = self._values.charsets.dictionary.to_pylist()
        for charset in np.unique(self._charsets[which]).tolist():
            cells = np.flatnonzero(which & (self._charsets == charset))
            try:
                make = converter(names[charset])
            except ConversionError:
                self._refuse(cells, problem)
                continue
            contents = self._values.contents.take(pa.array(self._selected[cells])).to_pylist()
            made: list[bytes] = []
            for cell, content in zip(cells.tolist(), contents, strict=True):
                try:
                    made.append(make(content))
                except (ConversionError, ValueError, RecursionError):
                    self._refuse([cell], problem)
                    made.append(content)
            self._put(cells, pa.array(made, pa.binary()))

    def _joined(self) -> pa.Array:
        """Put the pieces together: a head and a value each, and an end for each image that has any."""
        starts, values = self._starts.astype(np.int32), len(self._values)
        has_any = starts[1:] > starts[:-1]
        ends = np.r_[0, np.cumsum(has_any, dtype=np.int32)]
        quoted = self._actions != NULL
        head = self._columns * len(HEADS) + (2 * values + 3) - quoted
        head[1:][~quoted[:-1]] += 2
        first, last = starts[:-1][has_any], starts[1:][has_any] - 1
        head[first] = self._columns[first] * len(HEADS) + 2 * values + ~quoted[first]
        at = 2 * np.arange(len(head), dtype=np.int32) + np.repeat(ends[:-1], np.diff(starts))
        order: Any = np.empty(2 * len(head) + ends[-1], np.int32)
        order[at] = head
        order[at + 1] = self._pieces
        order[2 * last + 2 + ends[:-1][has_any]] = self._first_made + np.where(quoted[last], 1, 2)
        pieces = [self._values.numerals, self._contents, self._tables.heads, *self._made]
        whole = pa.concat_arrays(pieces).take(pa.array(order))
        # the pieces lie one behind the other: an image is all bytes from its first to its last
        offsets = np.ascontiguousarray(offsets_of(whole)[2 * starts + ends])
        buffers = [pa.array(has_any).buffers()[1], pa.py_buffer(offsets), whole.buffers()[2]]
        return self._checked(pa.Array.from_buffers(pa.binary(), len(has_any), buffers))

    def _checked(self, images: pa.Array) -> pa.Array:
        try:
            return images.cast(pa.string())
        except pa.ArrowInvalid:
            broken = [i for i, image in enumerate(images.to_pylist()) if image is not None and not _is_utf8(image)]
            self.problems.update(dict.fromkeys(broken, _NO_TEXT))
            mask: Any = np.zeros(len(images), bool)
            mask[broken] = True
            return self._checked(pa.array(images.to_numpy(zero_copy_only=False), pa.binary(), mask=mask))


def _escaped(contents: pa.Array) -> pa.Array:
    """Return texts in UTF-8 as they stand in JSON strings; whether they are UTF-8 is seen in the images."""
    return escaped(contents.view(pa.string())).view(pa.binary())


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_plain(charset: str) -> bool:
    """Return whether texts in a character set are UTF-8."""
    return charset.lower() != "binary" and is_utf8(charset)


def _quoted(charset: str) -> Callable[[bytes], bytes]:
    """Return what makes JSON text of bytes; bytes without a character set in a text column are taken if ASCII."""
    if is_plain(charset):
        return lambda content: _encode(content.decode())[1:-1]
    decode = decoder("ascii" if charset.lower() == "binary" else charset)
    return lambda content: _encode(decode(content))[1:-1]


def _without_zone(charset: str) -> Callable[[bytes], bytes]:
    quoted = _quoted(charset)
    return lambda content: quoted(content.removesuffix(b"+00:00").rstrip(b" "))


def _json(charset: str) -> Callable[[bytes], bytes]:
    decode = decoder(charset)

    def quoted(content: bytes) -> bytes:
        text = decode(content)
        msgspec.json.decode(text, type=msgspec.Raw)
        return _encode(text)[1:-1]

    return quoted
