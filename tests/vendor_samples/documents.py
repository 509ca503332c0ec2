# SPDX-License-Identifier: Apache-2.0
"""The vendors' documents on their formats: their JSON samples and their definitions, as they are printed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2].parent / "shared" / "seeds"

_HEADING = re.compile(r"^(\w+) JSON 消息格式\n\n数据同步至", re.MULTILINE)
_LABEL = re.compile(r"• (INSERT|UPDATE|DELETE)(?=（|\()|^(同步任务心跳消息)|^(Key|Value|DDL)\b", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One JSON text of a document.

    :param heading: the last heading and label above it.
    """

    heading: str
    text: str


def document(number: str) -> str:
    """Return the text of the document whose file's name begins with this number."""
    (file,) = FOLDER.glob(f"{number}_*.txt")
    return file.read_text(encoding="utf-8")


def blocks(number: str) -> list[Block]:
    """Return a document's JSON texts: from a line that begins with a brace to the brace that closes it."""
    text = document(number)
    result, end = [], 0
    for opening in re.finditer(r"^ *\{", text, re.MULTILINE):
        if opening.start() < end:
            continue
        depth = 0
        for brace in re.finditer(r"[{}]", text[opening.start() :]):
            depth += 1 if brace.group() == "{" else -1
            if depth == 0:
                break
        end = opening.start() + brace.end()
        result.append(Block(_heading(text[: opening.start()]), text[opening.start() : end].strip()))
    return result


def _heading(above: str) -> str:
    headings = list(_HEADING.finditer(above))
    labels = list(_LABEL.finditer(above, headings[-1].end() if headings else 0))
    parts = [headings[-1][1]] if headings else []
    return " ".join([*parts, *([next(filter(None, labels[-1].groups()))] if labels else [])])


def definitions(number: str) -> dict[str, dict[str, int]]:
    """Return the protobuf messages and enums that a document prints: numbers by the name of the field.

    Lines of a definition may run into each other, comments included.
    """
    result = {}
    for kind, name, body in re.findall(
        r"(message|enum) ?(\w+) ?\{(.*?)\}(?=\s|message|enum|$)", document(number), re.S
    ):
        pattern = r"([A-Z]+[0-9]*) = (\d+)" if kind == "enum" else r"\w[ ]+([A-Za-z_]+) = (\d+)"
        result[name] = {field: int(field_number) for field, field_number in re.findall(pattern, body)}
    return result
