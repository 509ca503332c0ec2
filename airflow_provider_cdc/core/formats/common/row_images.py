# SPDX-License-Identifier: Apache-2.0
"""Define row images as JSON: an object with one member for each column, its values as received."""

from __future__ import annotations

from typing import Any

import msgspec

Images = tuple[bytes | None, bytes | None]
"""The image of a row before a change, and the image after it."""

members_of: Any = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
"""Read the members of an image, in order."""
