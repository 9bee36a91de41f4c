"""What the documents name exists, and what exists is named in a document."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from nvdash.cli import main
from nvdash.readers.recognise import JSON_FORMATS, TEXT_FORMATS

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "matrix" / "README.md", *(ROOT / "docs").glob("*.md")])
SPAN = re.compile(r"`([^`\n]+)`")
FOLDERS = ("matrix/", "data/", "docs/", "tests/", "nvdash/", "pages/", ".ci/", ".streamlit/", "deploy/")
ELSEWHERE = ("data/nvdash.duckdb", "docs/design/attention_backends.md")
"""Made on first use, and a file of a framework's own repository."""
SETTING = re.compile(r"NVDASH_[A-Z][A-Z_]*[A-Z]")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def everything() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)


def commands(text: str) -> Iterator[str]:
    """Every `./run …` of a document: in code blocks, continuation lines joined, and in code spans."""
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        if line.strip().startswith("./run"):
            yield re.split(r"\s{2,}| # ", line.strip())[0]
        else:
            yield from (span for span in SPAN.findall(line) if span.startswith("./run"))


def resolved(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that these words name, and the words that are left."""
    found: click.Command = main
    while isinstance(found, click.Group) and words and not words[0].startswith("-"):
        inner = found.get_command(click.Context(found), words[0])
        assert inner, f"no command {words[0]!r} in {found.name}"
        found, words = inner, words[1:]
    return found, words


def problem(command: str) -> str | None:
    """What is wrong with a command of a document, or None."""
    words = [word for word in shlex.split(command)[1:] if word not in ("…", "...")]
    if words[:1] == ["test"] or not words:
        return None if set(words) <= {"test", "--full"} else "./run test takes --full only"
    try:
        found, rest = resolved(words)
    except AssertionError as error:
        return str(error)
    options = {name: option for option in found.params for name in (*option.opts, *option.secondary_opts)}
    alone = 0
    words = iter(rest)
    for word in words:
        if not word.startswith("-"):
            alone += 1
        elif (name := word.split("=")[0]) not in options and name not in ("--help", "-h"):
            return f"{found.name} has no option {name}"
        elif "=" not in word and name in options and not options[name].is_flag:
            next(words, None)
    takes = [argument for argument in found.params if isinstance(argument, click.Argument)]
    if alone and not takes:
        return f"{found.name} takes no argument"
    return None


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_every_command_and_flag_of_a_document_exists(path):
    wrong = {text: why for text in commands(path.read_text(encoding="utf-8")) if (why := problem(text))}
    assert not wrong


@pytest.mark.parametrize("text", ["./run chekc --gpu x", "./run check --gpus x", "./run matrix diff 0.24.0 0.33.0"])
def test_the_check_of_commands_finds_a_slip(text):
    assert problem(text)


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_every_link_of_a_document_leads_somewhere(path):
    links = re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8"))
    lost = [link for link in links if "://" not in link and not (path.parent / link).exists()]
    assert not lost


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_every_file_that_a_document_names_exists(path):
    spans = SPAN.findall(path.read_text(encoding="utf-8"))
    files = [span for span in spans if span.startswith(FOLDERS) and not re.search(r"[<{A-Z …]", span)]
    lost = [name for name in files if name not in ELSEWHERE and not list(ROOT.glob(name.rstrip("/")))]
    assert not lost


def pages() -> list[str]:
    return re.findall(r'st\.Page\([^)]*title="([^"]+)"', (ROOT / "app.py").read_text(encoding="utf-8"))


def test_every_page_is_named_in_the_readme_and_every_named_page_exists():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(pages()) == 6
    assert [title for title in pages() if title not in readme] == []
    said = re.findall(r"[Pp]age \*\*([^*]+)\*\*", everything())
    assert said
    assert [title for title in said if title not in pages()] == []


def test_every_command_is_named_in_a_document():
    text = everything()
    inner = main.get_command(click.Context(main), "matrix")
    assert isinstance(inner, click.Group)
    names = [*main.list_commands(click.Context(main)), *(f"matrix {name}" for name in inner.commands)]
    assert [name for name in names if f"./run {name}" not in text] == []


def test_every_check_of_the_matrix_is_named_in_a_document():
    checks = [path.stem for path in (ROOT / "nvdash" / "support" / "lint").glob("[a-z]*.py")]
    assert len(checks) >= 8
    assert [name for name in checks if f"`{name}`" not in everything()] == []


def test_every_format_that_is_read_is_named_in_a_document():
    formats = {item.name for item in (*JSON_FORMATS, *TEXT_FORMATS)}
    assert [name for name in sorted(formats) if f"`{name}`" not in everything()] == []


def test_every_setting_of_a_document_exists_in_the_code():
    sources = [ROOT / "run", *(ROOT / "nvdash").rglob("*.py")]
    known = set(SETTING.findall("\n".join(path.read_text(encoding="utf-8") for path in sources)))
    said = set(SETTING.findall(everything()))
    assert sorted(name for name in said if name not in known and not name.startswith("NVDASH_PYTHON_")) == []
