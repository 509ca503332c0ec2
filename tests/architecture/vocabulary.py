# SPDX-License-Identifier: Apache-2.0
"""Find retired words in names, docstrings, comments and messages of Python files, and in pages.

`python -m tests.architecture.vocabulary FOLDER...` lists them; without a folder it prints how many each folder has.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.architecture.imports import ROOT

# Word by word what to write instead. A pattern is looked for in prose and, word by word, in names.
RETIRED = {
    r"told": "report, state, print; of a variable: result, message, columns, mask",
    r"tell|tells|telling": "return, report, state, show; `tell apart` stays",
    r"anew": "again",
    r"beside": "next to",
    r"besides": "also, in addition to, except",
    r"mend|mends|mended|mending": "fix, correct, repair",
    r"likewise": "also, in the same way",
    r"dear|dearer|dearest": "expensive, costly",
    r"(?:stand|stands|stood|standing|set|sets) aside": "park, parked",
    r"vacate|vacates|vacated|vacating": "empty a location",
    r"debt|debts|owe|owes|owed": "pending deletes",
    r"what (?:becomes|became) of": "begin with the verb: decode, convert, report",
    r"(?<!there )(?<!there ever )(?:is|was) no (?!longer|more|such|less|better|\w+ than)[a-z]+": "is not a, is not any",
    r"(?:that|which|who) (?:is|are|was|were) none": "is not one",
    r"nothing is (?:told|said) of": "name what is missing",
}
# `None` is a word of Python, also behind "that is".
_PROSE = re.compile(
    "|".join(rf"(?P<w{n}>(?{'' if 'none' in word else 'i'}:\b(?:{word})\b))" for n, word in enumerate(RETIRED))
)
_IN_NAMES = re.compile("|".join(f"(?P<w{n}>^(?:{word})$)" for n, word in enumerate(RETIRED) if " " not in word))
_HINTS = list(RETIRED.values())

# As the whole name of something, they do not say what it is.
VAGUE = {"found", "given", "told", "kept", "place", "places", "wanted", "chosen"}
_NO_VERB = re.compile(r"(?:What|Which|How|Whether|Where|From where|Who)\b")

_ALLOWED = re.compile(r"\b(?:tell|tells|telling|told)\b(?=[^.;:]* apart\b)", re.IGNORECASE)
_CODE = re.compile(r"^ *```.*?^ *```|``[^`]*``|`[^`\n]*`|<[^>\n]*>|\]\([^)\s]*\)", re.MULTILINE | re.DOTALL)
_FOLDERS = ("airflow_provider_cdc", "docs", "example_dags", "proto", "spark_jobs", "tests")
_RECORDED = ROOT / "tests" / "captures" / "data"
_LISTS = tuple(ROOT / "tests" / "architecture" / name for name in ("vocabulary.py", "test_vocabulary.py"))


@dataclass(frozen=True)
class Finding:
    """A retired word, and where it is."""

    file: Path
    line: int
    word: str
    hint: str

    def __str__(self) -> str:
        file = self.file.relative_to(ROOT) if self.file.is_relative_to(ROOT) else self.file
        return f"{file}:{self.line}: {self.word!r} -> {self.hint}"


def findings(file: Path) -> list[Finding]:
    """Return the retired words of a Python file or a page, in the order of lines."""
    text = file.read_text(encoding="utf-8")
    words = in_page(text) if file.suffix == ".md" else in_python(text)
    return [Finding(file, line, word, hint) for line, word, hint in sorted(words)]


@cache
def checked_files() -> list[Path]:
    """Return the Python files and pages of the project.

    Not checked are the changelog, generated and recorded content, and the two files that list the retired words.
    """
    below = [file for folder in _FOLDERS for suffix in ("py", "md") for file in (ROOT / folder).rglob(f"*.{suffix}")]
    files = [*(page for page in ROOT.glob("*.md") if page.name != "CHANGELOG.md"), *below]
    written = (file for file in files if not file.is_relative_to(_RECORDED) and not file.match("*_pb2.py"))
    return sorted(file for file in written if file not in _LISTS)


def folder_of(file: Path) -> str:
    """Return the folder that a file is counted for."""
    return file.relative_to(ROOT).parent.as_posix()


def in_page(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, word and hint of each retired word of a Markdown text, its code left out."""
    yield from in_prose(_CODE.sub(lambda match: re.sub(r"[^\n]", "`", match.group()), text), 1)


def in_python(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, word and hint of each retired word of a Python file."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield from in_prose(token.string, token.start[0])
    for node in ast.walk(ast.parse(text)):
        yield from _in_names(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield from in_prose(_CODE.sub("`", node.value), node.lineno)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node) or ""
            if match := _NO_VERB.match(docstring):
                yield node.body[0].lineno, match.group(), "begin the docstring with a verb"


def in_prose(text: str, line: int) -> Iterator[tuple[int, str, str]]:
    """Yield line, word and hint of each retired word of a text that begins in a line."""
    text = _ALLOWED.sub("", text)
    for match in _PROSE.finditer(text):
        yield line + text.count("\n", 0, match.start()), match.group(), _hint(match)


def _in_names(node: ast.AST) -> Iterator[tuple[int, str, str]]:
    for name, line in _defined(node):
        for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name):
            if match := _IN_NAMES.match(part.lower()):
                yield line, name, _hint(match)
                break
        else:
            if name.strip("_") in VAGUE:
                yield line, name, "name what it holds"


def _defined(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names that a node defines, with their lines; uses of a name are not counted."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name, node.lineno
    elif isinstance(node, ast.arg):
        yield node.arg, node.lineno
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id, node.lineno
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr, node.lineno


def _hint(match: re.Match[str]) -> str:
    return _HINTS[int((match.lastgroup or "w0")[1:])]


def counts(files: Iterable[Path]) -> Counter[str]:
    """Return the number of retired words of each folder that has any."""
    counted: Counter[str] = Counter()
    for file in files:
        counted[folder_of(file)] += len(findings(file))
    return +counted


def main(folders: list[str]) -> None:
    """Print the retired words below folders, or the number of each folder."""
    files = checked_files()
    if not folders:
        for folder, count in sorted(counts(files).items()):
            print(f'    "{folder}": {count},')
    for folder in folders:
        for file in files:
            if file.is_relative_to(ROOT / folder):
                for finding in findings(file):
                    print(finding)


if __name__ == "__main__":
    main(sys.argv[1:])
