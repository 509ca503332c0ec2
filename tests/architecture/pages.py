# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/ for tests: their text and the blocks of code in them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.architecture.imports import ROOT

DOCS = ROOT / "docs"


def text_of(page: Path) -> str:
    """Return a page's text."""
    return page.read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """Return the code blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def pages(folder: str = "") -> list[Path]:
    """Return all pages below a folder of docs/, sorted."""
    return sorted((DOCS / folder).rglob("*.md"))
