"""What the Submit page does with an upload: read it, ask for gaps, store, undo; the preview is in `preview_parts`."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from nvdash.answers.words import count
from nvdash.errors import NvdashError
from nvdash.ui import cached, components, mapping_parts, preview_parts, selection, uploads

MAX_FILE_MB = 200
MAX_NAMED, MAX_LISTED = 8, 20
UNKNOWN = "I do not know"
ALWAYS_ASKED = (
    *("gpu", "gpu_count", "framework", "version", "weight_format", "kv_cache_dtype_requested"),
    *("kv_cache_dtype_resolved", "attention_backend", "prefix_cache_state", "workload"),
)
HELPFUL = (
    ("vLLM", "the JSON of `vllm bench serve`, the start-up log, one `/metrics` scrape before and one after"),
    ("SGLang", "the JSON Lines of `bench_serving`; it embeds the server's own settings"),
    ("TensorRT-LLM", "the report JSON or the console output of `trtllm-bench`"),
    ("Quality", "the results JSON of lm-evaluation-harness, RULER or LongBench"),
    ("Any tool", "a CSV of runs; you say what its columns hold"),
    ("Kernels", "a torch profiler trace, an nsys CSV, or our smoke report"),
)
Answer = dict[str, Any]


def uploader() -> str:
    """The key of the file field; a new one for every further submission, so that it starts empty."""
    return f"submit_files_{selection.recall('uploads', 0)}"


def before_upload() -> None:
    """Which files help, and what is never stored."""
    components.table([{"From": name, "Helps": what} for name, what in HELPFUL], "Which files help, per framework")
    st.caption("Never stored: prompts, generated texts, keys, host names, absolute paths.")


def preview_of(files: list[Any], mapping: Mapping[str, str]) -> Answer:
    """What these files say; kept for the session as long as files, mapping and store stay the same."""
    key = (mapping_parts.ids(files), tuple(sorted(mapping.items())), cached.store_revision())
    known = selection.recall("preview")
    if known and known[0] == key:
        return dict(known[1])
    with st.status("Reading your files", expanded=False) as status, uploads.saved(files) as paths:
        answer = components.asking(cached.ask_fresh, "preview", paths, mapping=mapping)
        status.update(label="Files are read", state="complete")
    selection.keep("preview", (key, answer))
    return dict(answer)


def gaps_form(preview: Answer) -> dict[str, str] | None:
    """3 · Still missing: only absent fields; returns what was typed when the form is sent."""
    if preview["runs"]:
        st.subheader("3 · Still missing", anchor=False)
        fields_read(preview["runs"][0]["provenance"])
    asked = [gap for gap in preview["missing"] if gap["field"] != "quality"]
    with st.form("submit_form", border=bool(asked)):
        typed = inputs(asked) if asked else {}
        word = "Submit run" if preview["runs"] or not preview["can_submit"] else "Submit report"
        sent = st.form_submit_button(word, icon=":material/upload:", disabled=not preview["can_submit"])
        if not preview["can_submit"]:
            st.caption("Nothing in these files can be stored yet.")
        elif asked:
            st.caption(
                "Leave a field empty if you do not know. Unknown is stored as unknown, and keeps the run out of "
                "comparisons that need it."
            )
    return {name: text for name, text in typed.items() if text and text != UNKNOWN} if sent else None


def fields_read(places: Mapping[str, str]) -> None:
    """The fields that a file beside the result gave, folded."""
    if places:
        with st.expander(f"{len(places)} {'field' if len(places) == 1 else 'fields'} read from your files"):
            rows = [{"Field": name, "From": components.plain(place)} for name, place in places.items()]
            components.table(rows, "Fields and the file each was read from")


def inputs(gaps: list[Answer]) -> dict[str, str | None]:
    """One input per gap, three beside each other."""
    grid, typed = st.grid(3, min_column_width=240), {}
    for gap in gaps:
        with grid.cell():
            typed[gap["field"]] = field(gap)
    return typed


def field(gap: Answer) -> str | None:
    """One input: a list with “I do not know” for what every comparison needs, a text field for the rest."""
    options = cached.field_options(gap["field"])
    key = f"submit_{gap['field']}"
    if gap["field"] in ALWAYS_ASKED:
        value = st.selectbox(
            gap["label"],
            [UNKNOWN, *options],
            index=None,
            key=key,
            placeholder="Not in any file",
            accept_new_options=True,
        )
        return None if value is None else str(value)
    return st.text_input(gap["label"], key=key, placeholder="Not in any file")


def store(files: list[Any], typed: dict[str, str], mapping: Mapping[str, str]) -> None:
    """Store the runs and remember them, so that they can be undone in this session."""
    try:
        with st.spinner("Storing"), uploads.saved(files) as paths:
            answer = cached.ask_fresh("submit", paths, typed, mapping=mapping, leave_out_refused=True)
    except NvdashError as error:
        components.show_error(error)
        return
    selection.keep("stored", answer)
    st.rerun()


def outcome() -> None:
    """What was stored last, with its undo."""
    answer = selection.recall("stored")
    if not answer:
        return
    for text, runs in stored_lines(answer):
        (st.success if text.startswith("✓") else st.info)(text)
        if runs and st.button("Undo", key=f"undo-{runs[0]}", icon=":material/undo:"):
            undone = cached.ask_fresh("undo", runs)
            selection.keep("stored", None)
            selection.keep("undone", undone)
            st.rerun()
    if st.button("Submit something else", type="tertiary"):
        selection.keep("stored", None)
        selection.keep("uploads", selection.recall("uploads", 0) + 1)
        st.rerun()


def stored_lines(answer: Answer) -> list[tuple[str, list[str]]]:
    """One line per outcome and the runs that its undo takes back."""
    added, back, known, smoke = (answer[key] for key in ("added", "reinstated", "duplicates", "smoke"))
    known = [run for run in known if run not in back]
    lines: list[tuple[str, list[str]]] = []
    if added:
        many = f"✓ Stored {named('run', added)}." if len(added) > 1 else f"✓ Stored as run {added[0]}."
        lines.append((many, list(added)))
    if back:
        lines.append(
            (f"{named('Run', back)} {'was' if len(back) == 1 else 'were'} withdrawn and counts again.", list(back))
        )
    if known:
        revised = " Your fields were added as a revision." if answer["revised"] else ""
        which = "This run is" if len(known) == 1 else f"These {count(len(known))} runs are"
        lines.append((f"{which} already stored as {ids(known)}.{revised}", []))
    if smoke["added"]:
        lines.append((f"✓ Smoke report stored as {ids(smoke['added'])}.", []))
    if smoke["duplicates"]:
        lines.append((f"This smoke report is already stored as {ids(smoke['duplicates'])}.", []))
    return lines


def named(word: str, runs: list[str]) -> str:
    """`run 4db01afb`, or `20 runs: 4db01afb, …` where there are several."""
    return f"{word} {runs[0]}" if len(runs) == 1 else f"{count(len(runs))} {word.lower()}s: {ids(runs)}"


def ids(runs: list[str]) -> str:
    """The first ids, and how many more there are."""
    more = f" and {count(len(runs) - MAX_NAMED)} more" if len(runs) > MAX_NAMED else ""
    return ", ".join(runs[:MAX_NAMED]) + more


def undone() -> None:
    """What an undo took back."""
    runs = selection.recall("undone")
    if runs:
        verb, them = ("is", "it") if len(runs) == 1 else ("are", "them")
        st.info(f"{named('Run', runs)} {verb} withdrawn. Submitting the same file again brings {them} back.")
        selection.keep("undone", None)


def stored_runs() -> None:
    """The newest runs of the store."""
    st.subheader("Runs in this store", anchor=False)
    answer = components.asking(cached.ask, "runs", {}, limit=MAX_LISTED)
    rows = [
        {
            "Run": f"`{row['run_id']}`",
            "Model": components.plain(row["model"]) or "unknown",
            "GPU": components.plain(row["gpu"]) or "unknown",
            "Weights": components.plain(row["weight_format"]) or "unknown",
            "Cache": components.plain(row["kv_cache_dtype_resolved"] or row["kv_cache_dtype_requested"]) or "unknown",
            "Output tok/s": preview_parts.number(row["output_tok_s"]),
            "TTFT mean, ms": preview_parts.number(row["ttft_mean_ms"]),
            "Remarks": str(len(row["warnings"])),
        }
        for row in answer["runs"]
    ]
    components.table(rows, "The newest runs of this store", "No runs yet.")
    if answer["total"] > len(rows):
        st.caption(f"{len(rows)} of {answer['total']} runs; `./run runs` lists all.")


def exports() -> None:
    """The listed runs as CSV and JSON."""
    answer = cached.ask("runs", {}, limit=MAX_LISTED)
    rows = [{key: value for key, value in row.items() if key != "warnings"} for row in answer["runs"]]
    components.downloads("runs", rows, answer)
