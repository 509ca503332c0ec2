# SPDX-License-Identifier: Apache-2.0
"""Make names that every catalog takes."""

from __future__ import annotations

import hashlib
import re
import unicodedata

_OTHERS = re.compile(r"[^a-z0-9_]")
_DIGEST = 4  # bytes
_LONGEST = 255  # characters


def safe_name(name: str) -> str:
    """Return a name in lower case of letters, digits and underscores; different names may get one."""
    text = _OTHERS.sub("_", unicodedata.normalize("NFKD", name).lower())
    if not text or text[0].isdigit():
        text = f"t_{text}"
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).hexdigest()
    return f"{text[: _LONGEST - len(digest) - 1]}_{digest}"
