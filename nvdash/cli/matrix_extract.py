"""`matrix extract`: reads the source of a release into the generated part of the matrix."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from nvdash.cli.output import Outcome, answers_json
from nvdash.errors import UsageError


@click.command("extract")
@click.argument("requirements", nargs=-1, metavar="vllm==X…")
@click.option(
    "--source", "sources", multiple=True, metavar="[RELEASE=]DIR", help="An unpacked tree instead of a sdist."
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder to write; the shipped matrix when left out.")
@click.option("--scratch", type=click.Path(path_type=Path), help="Where sdists are unpacked and kept.")
@answers_json
def command(requirements: tuple[str, ...], sources: tuple[str, ...], out: Path | None, scratch: Path | None) -> Outcome:
    """Read the source of releases, without importing it, and write the generated matrix files."""
    from nvdash.extract import extract

    if not requirements and not sources:
        raise UsageError("matrix extract", "a requirement such as vllm==0.33.0, or --source DIR", "got neither")
    trees = dict(named_source(source) for source in sources)
    answer = extract(requirements, trees, out, scratch)
    return answer, 0, lines


def named_source(text: str) -> tuple[str, Path]:
    """`RELEASE=DIR`, or a folder whose PKG-INFO names the release."""
    release, separator, folder = text.partition("=")
    if separator and release and "/" not in release:
        return release, Path(folder)
    names = (Path(text) / name for name in ("PKG-INFO", "METADATA"))
    info = next((path for path in names if path.is_file()), Path(text) / "PKG-INFO")
    version = (
        next(
            (
                line.partition(":")[2].strip()
                for line in info.read_text(encoding="utf-8").splitlines()
                if line.startswith("Version:")
            ),
            "",
        )
        if info.is_file()
        else ""
    )
    if not version:
        raise UsageError(
            f"--source {text}",
            "a tree with a PKG-INFO or METADATA that states its version",
            "got none",
            "write --source RELEASE=DIR",
        )
    return version, Path(text)


def lines(answer: dict[str, Any]) -> Iterator[str]:
    """What was read and where it went."""
    for row in answer["releases"]:
        yield f"{row['release']}: {row['atoms']} atoms, {row['facts']} facts, {row['undecided']} undecided cells"
    yield f"wrote {answer['written']} files in {answer['out']}"
