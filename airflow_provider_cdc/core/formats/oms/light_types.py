# SPDX-License-Identifier: Apache-2.0
"""Read ``__light_type``, the types in an image of OMS's DefaultExtendColumnType (docs/wire/oceanbase-oms.md 3)."""

from __future__ import annotations

import msgspec

from airflow_provider_cdc.core.formats.common.row_images import members_of
from airflow_provider_cdc.core.formats.oms import images as oms_images

LIGHT_TYPE = "__light_type"


class _LightType(msgspec.Struct, gc=False):
    schemaType: str


_light_types = msgspec.json.Decoder(dict[str, _LightType])


class TypedImages(oms_images.Images):
    """Images of one table that may end in ``__light_type``, usually always the same."""

    _tail = _light = _taken = b""

    def without_types(self, before: bytes | None, after: bytes | None) -> tuple[bytes | None, bytes | None]:
        """Return both images without their types; of a delete only the one before has any."""
        light = b""
        if before is not None:
            before, light = self._apart(before)
        if after is not None:
            after, newer = self._apart(after)
            light = newer or light
        if light != self._taken:
            self.state_types({name: item.schemaType for name, item in _light_types.decode(light or b"{}").items()})
            self._taken = light  # only now: what cannot be read fails each time
        return before, after

    def _apart(self, image: bytes) -> tuple[bytes, bytes]:
        """Return an image without its ``__light_type``, and that (empty where it has none)."""
        if self._tail and image.endswith(self._tail):  # unbalanced where it ends a nested object: then nothing fits
            return image[: -len(self._tail)] + b"}", self._light
        members = members_of(image)
        light = bytes(members.pop(LIGHT_TYPE, b""))
        if not light:
            return image, light
        tail = b',"' + LIGHT_TYPE.encode() + b'":' + light + b"}"
        if members and image.endswith(tail):
            self._tail, self._light = tail, light
        return msgspec.json.encode(members), light
