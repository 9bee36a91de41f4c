"""What the Submit page is made of: recognise, preview beside stored runs, ask for gaps, store, undo."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from nvdash.answers.words import VERDICTS, count, figure
from nvdash.errors import NvdashError
from nvdash.ui import cached, components, mapping_parts, selection, uploads

MAX_FILE_MB = 200
MAX_REMARKS, MAX_FOLDED, MAX_NAMED = 6, 100, 8
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
    ("Kernels", "a torch profiler trace, an nsys CSV, or our smoke report"),
)
Answer = dict[str, Any]


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


def recognised(preview: Answer) -> None:
    """1 · What we recognised."""
    st.subheader("1 · What we recognised", anchor=False)
    rows = [
        {
            "File": components.plain(row["file"]),
            "Result": mark(row),
            "Format": row["format"] or "not a result format",
            "Gives": components.plain(", ".join(row["gives"])) or "nothing was read",
        }
        for row in preview["files"]
    ]
    components.table(rows, "Each file, whether it was recognised, and what it gives")
    for row in preview["files"]:
        if row.get("error"):
            error = row["error"]
            st.warning(
                f"**{components.plain(row['file'])}** is left out: expected {components.plain(error['expected'])}, "
                f"{components.plain(error['found'])}. {components.plain(error['hint'])}"
            )


def mark(row: Answer) -> str:
    """Recognised or left out, as symbol and word."""
    return ":green-badge[● Recognised]" if row["format"] and not row.get("error") else ":gray-badge[– Left out]"


def beside(preview: Answer) -> None:
    """2 · Your run next to ours, with warnings at the right."""
    st.subheader("2 · Your run next to ours", anchor=False)
    left, right = st.columns([3, 2], gap="large")
    with left:
        for run in preview["runs"]:
            run_beside(run)
        if preview["num_runs"] > len(preview["runs"]):
            st.caption(f"and {count(preview['num_runs'] - len(preview['runs']))} more runs of these files")
        if not preview["runs"]:
            st.caption("These files hold no benchmark run.")
    with right:
        remarks(preview["warnings"])


def remarks(texts: list[str]) -> None:
    """What is odd about the files: the first remarks in full, the others folded."""
    for text in texts[:MAX_REMARKS]:
        st.warning(components.plain(text))
    if len(texts) > MAX_REMARKS:
        with st.expander(f"{count(len(texts) - MAX_REMARKS)} more remarks"):
            rows = [{"Remark": components.plain(text)} for text in texts[MAX_REMARKS : MAX_REMARKS + MAX_FOLDED]]
            components.table(rows, "Further remarks on these files")
            if len(texts) > MAX_REMARKS + MAX_FOLDED:
                st.caption("`./run submit --dry-run` lists all.")
    if not texts:
        st.caption("No remarks: the numbers are plausible.")


def run_beside(run: Answer) -> None:
    """One run of the upload beside the nearest stored run of the same model and GPU."""
    values, near = run["values"], run["nearest"]
    st.markdown(
        f"**{components.plain(values.get('model')) or 'model not said'}** · run `{run['run_id']}`"
        + (" · already stored" if run["already_stored"] else "")
    )
    verdict = values.get("cache_verdict")
    if verdict in VERDICTS and verdict != "unknown":
        st.markdown(f"KV cache asked for and seen: {components.badge(verdict)}")
    rows = [
        {
            "Metric": row["label"],
            "This upload": number(row["this"]),
            "Nearest run": number(row["nearest"]),
            "Difference": difference(row["ratio"]),
        }
        for row in run["rows"]
    ]
    components.table(rows, "This upload beside the nearest run", "No speed or capacity in these files.")
    if near:
        apart = ", ".join(near["differs_in"]) or "nothing that is recorded"
        st.caption(f"Nearest run {near['run_id']}; it differs in {components.plain(apart)}.")
    else:
        st.caption("No run of this model on this GPU is stored yet.")


def number(value: Any) -> str:
    """A metric as text; unknown is not zero."""
    return "not measured" if value is None else figure(value)


def difference(ratio: float | None) -> str:
    """A ratio as a signed percentage."""
    return "—" if ratio is None else f"{(ratio - 1) * 100:+.1f} %".replace("-", "−")


def gaps_form(preview: Answer) -> dict[str, str] | None:
    """3 · Still missing: only absent fields; returns what was typed when the form is sent."""
    st.subheader("3 · Still missing", anchor=False)
    read = {name: value for run in preview["runs"][:1] for name, value in run["provenance"].items()}
    with st.expander(f"{len(read)} fields read from your files"):
        components.table(
            [{"Field": name, "From": components.plain(place)} for name, place in read.items()],
            "Fields and the file each was read from",
            "Read from the result file itself.",
        )
    with st.form("submit_form"):
        grid = st.grid(3, min_column_width=240)
        typed = {}
        for gap in preview["missing"]:
            if gap["field"] != "quality":
                with grid.cell():
                    typed[gap["field"]] = field(gap)
        sent = st.form_submit_button("Submit run", icon=":material/upload:", disabled=not preview["can_submit"])
        st.caption(
            "Leave a field empty if you do not know. Unknown is stored as unknown, and keeps the run out of "
            "comparisons that need it."
        )
    return {name: text for name, text in typed.items() if text and text != UNKNOWN} if sent else None


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
        st.success(text)
        if runs and st.button("Undo", key=f"undo-{runs[0]}", icon=":material/undo:"):
            undone = cached.ask_fresh("undo", runs)
            selection.keep("stored", None)
            selection.keep("undone", undone)
            st.rerun()
    if st.button("Submit something else", type="tertiary"):
        selection.keep("stored", None)
        st.rerun()


def stored_lines(answer: Answer) -> list[tuple[str, list[str]]]:
    """One line per outcome and the runs that its undo takes back."""
    added, back, known, smoke = (answer[key] for key in ("added", "reinstated", "duplicates", "smoke"))
    known = [run for run in known if run not in back]
    lines: list[tuple[str, list[str]]] = []
    if added:
        lines.append((f"✓ Stored as {named('run', added)}.", list(added)))
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
    answer = components.asking(cached.ask, "runs", {}, limit=50)
    rows = [
        {
            "Run": f"`{row['run_id']}`",
            "Model": components.plain(row["model"]) or "unknown",
            "GPU": components.plain(row["gpu"]) or "unknown",
            "Weights": row["weight_format"] or "unknown",
            "Cache": row["kv_cache_dtype_resolved"] or row["kv_cache_dtype_requested"] or "unknown",
            "Output tok/s": number(row["output_tok_s"]),
            "TTFT mean, ms": number(row["ttft_mean_ms"]),
            "Remarks": str(len(row["warnings"])),
        }
        for row in answer["runs"]
    ]
    components.table(rows, "The newest runs of this store", "No runs yet.")
    if answer["total"] > len(rows):
        st.caption(f"{len(rows)} of {answer['total']} runs; `./run runs` lists all.")


def exports() -> None:
    """The listed runs as CSV and JSON."""
    answer = cached.ask("runs", {}, limit=50)
    rows = [{key: value for key, value in row.items() if key != "warnings"} for row in answer["runs"]]
    components.downloads("runs", rows, answer)
