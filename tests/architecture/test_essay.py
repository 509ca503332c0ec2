# SPDX-License-Identifier: Apache-2.0
"""The snippets of the newcomers' essay run, and give what the page shows."""

from __future__ import annotations

import doctest
from typing import Any

from tests.architecture.pages import DOCS, blocks, text_of

ESSAY = DOCS / "contributing" / "a-record-from-kafka-to-a-table.md"


def outputs_that_differ(text: str) -> list[str]:
    """Run the snippets of a page in one namespace; return a report on each example whose output is another one."""
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    names: dict[str, Any] = {}
    reports: list[str] = []
    for number, block in enumerate(blocks(text, "pycon"), 1):
        test = parser.get_doctest(block, names, f"block {number}", str(ESSAY), 0)
        runner.run(test, out=reports.append, clear_globs=False)
        names = test.globs
    return reports


def test_every_snippet_gives_what_the_page_shows() -> None:
    text = text_of(ESSAY)
    assert len(blocks(text, "pycon")) > 10
    assert "".join(outputs_that_differ(text)) == ""


def test_another_output_is_noticed() -> None:
    page = "```pycon\n>>> one = 1\n>>> one\n1\n```\n\n```pycon\n>>> one + 1\n3\n```\n"
    assert "Expected:\n    3\nGot:\n    2\n" in "".join(outputs_that_differ(page))
