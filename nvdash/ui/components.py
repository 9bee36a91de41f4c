"""Parts that several pages show alike: header, answer line, verdicts, tables, exports."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pandas as pd
import streamlit as st

from nvdash.answers.words import EVIDENCE, KERNELS, STAGES, VERDICTS, count, dtype
from nvdash.errors import NvdashError, Problems
from nvdash.ui import cached, selection, uploads

STARTS_A_BLOCK = re.compile(r"^(\s*\d*)([-=.])(?=\s|$)")
"""Text that markdown would read as a list or a heading: `-`, `1. `."""
Table = list[dict[str, Any]]
TONES: dict[str, Callable[..., Any]] = {
    "success": st.success,
    "info": st.info,
    "warning": st.warning,
    "error": st.error,
}


def notices() -> None:
    """What an incoming link asked for and did not get, until the reader closes it."""
    found = selection.notices()
    for text in found:
        st.warning(plain(text), icon=":material/link_off:")
    if found:
        st.button("Close the notice", on_click=selection.dismiss, type="tertiary")


def header(title: str, fixed: str, exports: Callable[[], None] | None = None) -> None:
    """Title, export menu, and the grey line that repeats what is held fixed."""
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.title(title, anchor=False, width="content")
        if exports:
            with st.popover("Export", icon=":material/download:", width="content"):
                exports()
                st.caption("Link to this view")
                st.code(selection.address(), language=None, wrap_lines=True)
    st.caption(fixed)
    notices()


class Ended(Exception):
    """The page ends here: its error is shown. Unlike `st.stop`, it lets `titled` still draw."""


@contextmanager
def titled(title: str, fixed: str, top: Any = None) -> Iterator[None]:
    """A page whose answer is refused still has its title and the line of what was asked."""
    place = top or st.container()
    try:
        yield
    except Ended:
        with place:
            header(title, fixed)
        raise


def fixed_line(chosen: selection.Selection, resolved: str | None = None) -> str:
    """The configuration in one line, as every page repeats it (on a phone the selectors are hidden)."""
    backend = f"{chosen.backend} → {resolved}" if resolved and resolved != chosen.backend else chosen.backend
    return " · ".join(
        [
            chosen.model,
            f"{chosen.count} × {chosen.gpu}",
            f"{cached.framework_name(chosen.framework)} {chosen.release}",
            f"{dtype(chosen.weights)} weights",
            f"{dtype(chosen.kv)} cache",
            f"backend {backend}",
            f"matrix {cached.matrix_digest()}",
        ]
    )


def answer(tone: str, text: str) -> None:
    """The first line under the title: one sentence that answers."""
    TONES[tone](text)


def notes(*texts: str) -> None:
    """What an answer took from the checkpoint or left open, one grey line each."""
    for text in dict.fromkeys(texts):
        st.caption(plain(text[:1].upper() + text[1:]).rstrip(".") + ".")


def badge(key: str) -> str:
    """A verdict as a coloured markdown badge, symbol and word together."""
    word = VERDICTS[key]
    return f":{word.colour}-badge[{word}]"


def legend() -> None:
    """The six verdicts in words, for whoever does not know the symbols."""
    st.markdown(" ".join(badge(key) for key in VERDICTS))


def plain(value: Any) -> str:
    """Text from a file or a user that must never be read as markdown; an upload stands under its own name."""
    text = "" if value is None else uploads.FOLDER.sub("", str(value))
    safe = "".join(f"\\{c}" if c in r"\`*_{}[]<>()#+!|~$:" else c for c in text).replace("\n", " ")
    return STARTS_A_BLOCK.sub(r"\1\\\2", safe)


def code(text: Any) -> str:
    """A name in a code span, where only the backtick itself could end it."""
    return f"`{str(text).replace('`', '')}`"


def place(evidence: dict[str, Any] | None) -> str:
    """Evidence as bar, word and file:line, or who reported it; the whole path stands in every export."""
    if not evidence:
        return EVIDENCE["none"]
    bar = EVIDENCE.get(str(evidence.get("level", "source")), EVIDENCE["source"])
    file, line, release = (evidence.get(key) for key in ("file", "line", "release"))
    if file is None:
        return f"{bar} {plain(evidence.get('url') or evidence.get('run') or '')}".strip()
    short = str(file).rsplit("/", 1)[-1]
    return f"{bar} `{short}{f':{line}' if line else ''}`" + (f" in {release}" if release else "")


def stage_rows(check: dict[str, Any], since: dict[str, str | None] | None = None) -> Table:
    """One row per stage: status, since when, path or reason, and who says so; the same reason stands there once."""
    rows, told = [], dict[tuple[str, str], str]()
    for key, label in STAGES.items():
        stage = check["stages"][key]
        row = {"Stage": f"**{label}**", "Status": badge(stage["verdict"])}
        if since:
            row["Since"] = since[key] or "—"
        text, source = path_text(stage), place(stage.get("evidence"))
        first = told.setdefault((text, source), label)
        if first != label and stage.get("reason"):
            text, source = f"as for {first}", "the same"
        rows.append({**row, "Path or reason": text, "Evidence": source})
    return rows


def path_text(stage: dict[str, Any]) -> str:
    """The attention path with its kernel kind and query type, then the reason."""
    query = (stage.get("compute") or {}).get("q")
    kernel = KERNELS.get(str(stage.get("kernel")))
    parts = [stage.get("path"), kernel, f"{query} queries" if query else None]
    path = " · ".join(str(part) for part in parts if part)
    return plain(" — ".join(filter(None, [path, stage.get("reason")]))) or "—"


def table(rows: Table, alt: str, empty: str = "Nothing to show.") -> None:
    """A plain table; cells may hold markdown that we wrote ourselves."""
    if not rows:
        st.caption(empty)
        return
    st.table(pd.DataFrame(rows), hide_index=True, border="horizontal", alt=alt)


def without_repeats(rows: Table, keep: Sequence[str]) -> tuple[Table, dict[str, str]]:
    """The rows without the columns that say the same in each of them, and what those columns say."""
    free = {name: value for row in rows[:1] for name, value in row.items() if name not in keep}
    same = {name: value for name, value in free.items() if all(row[name] == value for row in rows)}
    return [{name: value for name, value in row.items() if name not in same} for row in rows], same


def command(text: str, label: str = "The same on the command line") -> None:
    """A command to copy, without colours that fail contrast."""
    st.caption(label)
    st.code(text, language=None, wrap_lines=True)


def between(low: float | None, high: float | None) -> str:
    """A count, or the range it lies in."""
    if low is None or high is None:
        return "unknown"
    return count(max(low, 0)) if low == high else f"{count(max(low, 0))} to {count(max(high, 0))}"


def downloads(name: str, rows: Table, answer_json: Any, markdown: str | None = None) -> None:
    """CSV and JSON of exactly what is shown, and the answer as Markdown where there is one."""
    taken = {
        "CSV": (cached.safe_csv(rows), "csv", "text/csv"),
        "JSON": (cached.as_json(answer_json), "json", "application/json"),
        "Markdown": (markdown, "md", "text/markdown"),
    }
    for label, (text, ending, kind) in taken.items():
        if text is not None:
            file = f"nvdash-{name}.{ending}"
            st.download_button(label, text, file, kind, key=f"{name}_{ending}", on_click="ignore", width="stretch")


def exporter(name: str, rows: Table) -> Callable[[], None]:
    """An export menu for rows that are on the page."""
    return lambda: downloads(name, rows, rows)


def asking(question: Callable[..., Any], *words: Any, **more: Any) -> Any:
    """The answer, or the four parts of the error in words and an end of the page."""
    try:
        return question(*words, **more)
    except NvdashError as error:
        show_error(error)
        raise Ended from error


def broken_facts() -> None:
    """Facts that do not read hide the answers of their framework, and only those."""
    for framework, error in cached.broken().items():
        st.warning(f"Answers about {cached.framework_name(framework)} are hidden: its facts have problems.")
        show_error(error)


def show_error(error: NvdashError) -> None:
    """Place, expected, found, next step: what a person needs to go on; several problems of one file folded."""
    problems: Sequence[NvdashError] = error.problems if isinstance(error, Problems) else [error]
    if len(problems) > 1:
        st.error(f"**{plain(error.where)}** has {len(problems)} problems; nothing that it says is shown.")
        with st.expander("Each problem with its place"):
            table([error_row(problem) for problem in problems], "Place, expected, found and next step of each problem")
        return
    row = error_row(problems[0])
    st.error(
        f"**{row['Place']}**: expected {row['Expected']}, {row['Found']}."
        + (f"\n\n{row['Next step']}" if row["Next step"] else "")
    )


def error_row(error: NvdashError) -> dict[str, str]:
    """The four parts of an error, as text that no page reads as markdown."""
    parts = (error.where, error.expected, error.found, error.hint)
    return dict(zip(("Place", "Expected", "Found", "Next step"), map(plain, parts), strict=True))


def tiles(entries: Sequence[tuple[str, str, str]]) -> None:
    """Four framed tiles: question, answer, where it comes from."""
    grid = st.grid(len(entries), min_column_width=205, border=True)
    for question, short, source in entries:
        with grid.cell():
            st.caption(question)
            st.markdown(f"**{short}**")
            st.caption(source)
