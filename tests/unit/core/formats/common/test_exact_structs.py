# SPDX-License-Identifier: Apache-2.0
"""Objects with exactly known members."""

from __future__ import annotations

import msgspec
import pytest

from airflow_provider_cdc.core.formats.common.exact_structs import NO_STRUCT, exact_struct


def test_an_object_with_these_members_is_read_and_written_in_their_order() -> None:
    decode, fields = exact_struct(("id", "Größe", "a b"))
    row = decode(b'{"a b" : 1.50,"id":null,"Gr\xc3\xb6\xc3\x9fe":{"x":[ ]}}')
    assert msgspec.json.encode(row) == '{"id":null,"Größe":{"x":[ ]},"a b":1.50}'.encode()
    setattr(row, fields["Größe"], msgspec.Raw(b'"2"'))
    assert msgspec.json.encode(row) == '{"id":null,"Größe":"2","a b":1.50}'.encode()


@pytest.mark.parametrize("value", [b"{}", b'{"id":1}', b'{"id":1,"a":2,"b":3}', b'{"id":1,"a":}', b"[1,2]", b"null"])
def test_any_other_is_refused(value: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        exact_struct(("id", "a")).decode(value)


def test_a_partial_object_lacks_members_and_has_no_others() -> None:
    decode = exact_struct(("id", "a", "b"), partial=True).decode
    assert msgspec.json.encode(decode(b'{ "b" : null,"id":1.0}')) == b'{"id":1.0,"b":null}'
    assert msgspec.json.encode(decode(b"{}")) == b"{}"
    for other in (b'{"id":1,"c":2}', b"null", b'{"id":}'):
        with pytest.raises(msgspec.MsgspecError):
            decode(other)


@pytest.mark.parametrize("name", ['say "x"', "back\\slash", "tab\t"])
def test_some_names_allow_no_struct(name: str) -> None:
    assert exact_struct(("id", name)) is exact_struct(("id", name), partial=True) is NO_STRUCT
    with pytest.raises(msgspec.MsgspecError):
        NO_STRUCT.decode(msgspec.json.encode({"id": 1, name: 2}))


def test_an_object_without_members_is_read_by_no_struct() -> None:
    with pytest.raises(msgspec.MsgspecError):
        exact_struct(()).decode(b"{}")
