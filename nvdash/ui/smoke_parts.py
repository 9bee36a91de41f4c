"""What the Smoke page is made of: choose and run cases, live progress, a report, the history."""

from typing import Any

import streamlit as st

from nvdash.answers.words import SMOKE, VERDICTS, count
from nvdash.ui import cached, charts, components, selection
from nvdash.ui.selection import Selection

PHASES = {
    "import": "Import",
    "build": "Building kernels, can take 10 minutes the first time",
    "allocate": "Allocate cache",
    "prefill": "Prefill",
    "decode": "Decode",
    "compare": "Compare",
}
CASES, REPORT = "smoke_cases", "smoke_report"
TONES = {"green": "success", "orange": "warning", "red": "error", "gray": "info"}
CONFIGURATIONS = ("Wide weights", "Weights only", "Cache only", "Both")
RUNS_THERE = ("expected", "validated", "conditional")
GOOD = ("pass", "pass_dtype_unproven")
Answer = dict[str, Any]


def run(chosen: Selection) -> None:
    """Choose cases and run them; one case at a time on this machine."""
    found = cached.preflight()
    where(found)
    rows = cached.smoke_cases(chosen.question())
    runnable = [row["title"] for row in rows if row["why_not"] is None]
    presets(rows)
    selection.begin_with(CASES, [title for title in runnable if "nvfp4 cache" in title][:1])
    picked = st.pills(
        "Cases",
        [row["title"] for row in rows],
        selection_mode="multi",
        key=CASES,
        help="Each case runs in a process of its own; about half a minute for a reference case.",
    )
    blocked = [row for row in rows if row["title"] in picked and row["why_not"]]
    start(rows, picked, blocked)
    progress()
    for row in blocked[:2]:
        components.command(row["command"], f"{row['title']}: run it where a GPU is, then submit the file it writes")
    components.table([case_row(row) for row in rows], "Cases, what is expected of each, and its last verdict")
    answers = {row["engine"]: row["answers"] for row in rows}
    st.caption(" ".join(f"Cases of {cached.framework_name(engine)} show {text}." for engine, text in answers.items()))
    elsewhere(chosen, rows)


def presets(rows: list[Answer]) -> None:
    """Choose several cases at once."""
    expected = [row["title"] for row in rows if row["engine"] != "reference" and row["expect"] in RUNS_THERE]
    groups = {
        "Every reference format": [row["title"] for row in rows if row["engine"] == "reference"],
        "All four configurations": [row["title"] for row in rows if row["title"].startswith(CONFIGURATIONS)],
        "Every dtype expected on this GPU": [title for title in expected if " cache on " in title],
    }
    with st.container(horizontal=True):
        for label, titles in groups.items():
            st.button(label, on_click=selection.choose, args=(CASES, titles), disabled=not titles)


def where(found: Answer) -> None:
    """The GPU of this machine, or that there is none; every missing thing with the line that fixes it."""
    if found["gpu"]:
        gpu = found["gpu"]
        st.markdown(f"GPU found: **{components.plain(gpu.get('name'))}**, {components.plain(gpu)}")
    else:
        st.info(
            "No GPU here. Run this where one is, then submit the file it writes. The reference engine runs here: "
            "it proves the arithmetic and the bytes of a format, and no kernel."
        )
    with st.expander("What this machine has for smoke tests"):
        components.table(
            [
                {
                    "Item": components.plain(item["item"]),
                    "State": ":green-badge[● ok]" if item["ok"] else ":gray-badge[– missing]",
                    "Found": components.plain(item["found"]),
                    "Fix": components.code(item["fix"]) if item["fix"] else "—",
                }
                for item in found["items"]
            ],
            "What smoke tests need and what is missing",
        )


def case_row(row: Answer) -> Answer:
    """One case as a table row."""
    last = SMOKE[row["last_verdict"]] if row["last_verdict"] else "not run"
    expect = VERDICTS.get(row["expect"])
    return {
        "Case": row["title"],
        "Expect": str(expect) if expect else row["expect"],
        "Last verdict": str(last),
        "Here": "runs here" if row["why_not"] is None else components.plain(row["why_not"]),
    }


def start(rows: list[Answer], picked: list[str], blocked: list[Answer]) -> None:
    """The button, with its reason beside it where it cannot be pressed."""
    running = cached.smoke_running()
    questions = [row["question"] for row in rows if row["title"] in picked and row["why_not"] is None]
    mine = selection.recall("smoke_job")
    label = f"Run {len(questions)} case" + ("s" if len(questions) != 1 else "")
    if running and running != mine:
        label = "Running for another session"
    left, right = st.columns([1, 3], vertical_alignment="center")
    if left.button(label, icon=":material/play_arrow:", disabled=bool(running) or not questions, key="smoke_start"):
        selection.keep("smoke_job", cached.ask_fresh("smoke_start", questions))
        st.rerun()
    if blocked:
        right.caption(f"{len(blocked)} of the chosen cases cannot run here: {components.plain(blocked[0]['why_not'])}.")
    elif not questions:
        right.caption("Choose at least one case that runs here.")


def progress() -> None:
    """Live progress of the running job; polls only while something runs."""
    job = cached.smoke_running() or selection.recall("smoke_job")
    if job is None:
        return
    state = cached.ask_fresh("smoke_poll", job)
    if state is None:
        return
    st.fragment(show_progress, run_every=0.5 if state["state"] == "running" else None)(job)


def show_progress(job: str) -> None:
    """Case, phase, seconds and the newest lines; the cancel button inside reaches the job at once."""
    state = cached.ask_fresh("smoke_poll", job)
    if state["state"] != "running":
        finished(state)
        return
    phases = list(PHASES)
    at = phases.index(state["phase"]) if state["phase"] in phases else 0
    st.progress(
        (state["case"] + (at + 1) / (len(phases) + 1)) / state["of"],
        f"Case {state['case'] + 1} of {state['of']} · {PHASES[phases[at]]} · {state['seconds']:.0f} s",
    )
    if st.button("Cancel", icon=":material/stop:", key="smoke_cancel"):
        cached.ask_fresh("smoke_cancel", job)
    if state["lines"]:
        st.code("\n".join(state["lines"][-8:]), language=None, wrap_lines=True)


def finished(state: Answer) -> None:
    """How the job ended; the page is drawn once more so that everything shows the new report."""
    if selection.recall("smoke_seen") != state["id"]:
        selection.keep("smoke_seen", state["id"])
        st.rerun()
    if state["state"] == "cancelled":
        st.info("Cancelled. Finished cases are kept.")
    elif state["state"] == "failed":
        error = state["error"]
        st.error(
            f"{components.plain(error['where'])}: {components.plain(error['found'])}. {components.plain(error['hint'])}"
        )
    for report in state["reports"]:
        word = SMOKE[report["verdict"]]
        components.answer(TONES[word.colour], f"**{word}.** {components.plain(report['reason'])}")


def elsewhere(chosen: Selection, rows: list[Answer]) -> None:
    """The same tests on a machine with a GPU: command, Slurm line, Kubernetes Job; none without an adapter."""
    if not any(row["engine"] == chosen.framework for row in rows):
        name = cached.framework_name(chosen.framework)
        st.info(f"No smoke test drives {name} yet. A trace or a log of its own run can be submitted.")
        return
    question = chosen.question(engine=chosen.framework)
    with st.expander("Run it where a GPU is"):
        components.command(cached.ask_fresh("smoke_command", question), "Command")
        for target, label in (("slurm", "Slurm"), ("k8s", "Kubernetes Job")):
            job = components.asking(cached.ask_fresh, "smoke_emit", question, target)
            components.command(job["text"], label)
        st.caption("None of these templates was run by this project; the report they write is what counts.")
        st.page_link("pages/lab/submit.py", label="Submit the report", icon=":material/upload_file:")


def last() -> None:
    """The report that the link names, else the newest one."""
    history = cached.smoke_history()
    if not history:
        st.info("No smoke report in this store yet. Run a case, or submit a report.")
        return
    names = {name_of(row): row for row in history}
    picked = st.selectbox("Report", list(names), key=REPORT, bind="query-params")
    row = names[picked]
    report(row)
    asked = {**row["question"], "engine": row["engine"]}
    components.command(cached.ask_fresh("smoke_command", asked), "This case on the command line")


def name_of(row: Answer) -> str:
    """A report's id, engine, dtype and time, as the selector and the link name it."""
    requested = row["requested"]
    return f"{row['smoke_id'][:8]} {row['engine']} {requested['kv_cache_dtype']} {row['ran_at'][:16]}"


def report(row: Answer) -> None:
    """One report: verdict sentence, requested / resolved / observed, bytes, numbers, kernels, what was not tested."""
    word = SMOKE[row["verdict"]]
    components.answer(TONES[word.colour], f"**{word}.** {components.plain(row['reason'])}")
    st.caption(
        " · ".join(
            str(part)
            for part in (
                row["framework"],
                row["release"] or "release unknown",
                row["gpu"] or row["arch"],
                row["ran_at"],
            )
        )
    )
    if row["engine"] == "reference":
        st.caption("Reference engine: our own arithmetic on this machine. It proves no kernel and changes no verdict.")
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.subheader("Requested, resolved, observed", anchor=False)
        components.table(three_columns(row), "What was asked for, what the engine says, what was seen")
        kernels(row)
    with right:
        sizes(row)
        st.subheader("Verdict ladder", anchor=False)
        st.markdown(
            "  \n".join(
                f"{'**' if k == row['verdict'] else ''}{w}{' ← this run**' if k == row['verdict'] else ''}"
                for k, w in SMOKE.items()
                if k != "cancelled"
            )
        )
        st.caption("Only the first two may turn a matrix cell green.")
    numbers(row)
    st.subheader("Not tested", anchor=False)
    st.markdown("\n".join(f"- {components.plain(text)}" for text in row["not_tested"]))
    contradiction(row)
    st.download_button(
        "Report as JSON",
        data=lambda: cached.as_json(row),
        file_name=f"smoke-{row['smoke_id'][:8]}.json",
        mime="application/json",
        on_click="ignore",
    )


def three_columns(row: Answer) -> list[Answer]:
    """Cache dtype, backend and weights in their three fields."""
    asked, told, seen = row["requested"], row["resolved"], row["observed"]
    stored = seen.get("stored_as_requested")
    same = {True: "✓ stored as requested", False: "✕ stored otherwise", None: "? cannot be told"}[stored]
    tensor = f"{seen.get('tensor_dtype') or 'unknown'} {seen.get('tensor_shape') or ''}"
    rows = [
        ("Cache dtype", "kv_cache_dtype", f"{tensor}, {count(seen.get('kv_bytes_per_token'))} B/token", same),
        ("Backend", "backend", ", ".join(map(str, seen.get("families") or [])) or "no kernel names", "—"),
        ("Weights", "weights", seen.get("weights") or "not exercised", "—"),
    ]
    return [
        {
            "What": label,
            "Requested": components.plain(asked.get(key)) or "nothing",
            "Resolved": components.plain(told.get(key)) or "not said",
            "Observed": components.plain(text),
            "Check": check,
        }
        for label, key, text, check in rows
    ]


def sizes(row: Answer) -> None:
    """Bytes per token: formula against allocated, data and scales apart."""
    st.subheader("Bytes", anchor=False)
    cache = row["cache"] or {}
    formula, allocated = cache.get("formula_bytes_per_token"), cache.get("bytes_per_token")
    left, right = st.columns(2)
    left.metric("Formula, B/token", count(formula), border=True)
    exact = "exact" if formula is not None and formula == allocated else None
    right.metric("Allocated, B/token", count(allocated), exact, delta_color="off", delta_arrow="off", border=True)
    if cache.get("scale_bytes_per_token") is not None:
        data, scale = count(cache["data_bytes_per_token"]), count(cache["scale_bytes_per_token"])
        st.caption(
            f"{data} B of values and {scale} B of scales; {count(cache.get('num_blocks'))} blocks of "
            f"{count(cache.get('block_size'))} tokens, {count(cache.get('pool_bytes'))} B in all."
        )


def kernels(row: Answer) -> None:
    """Kernels by family and phase; unknown ones are kept."""
    st.subheader("Kernels by family", anchor=False)
    rows = row["kernels"]
    if not rows:
        st.caption("No kernel was traced in this run.")
        return
    for phase in dict.fromkeys(item.get("phase") or "whole run" for item in rows):
        here = [item for item in rows if (item.get("phase") or "whole run") == phase]
        st.markdown(f"**{phase.capitalize()}**")
        families = by_family(here)
        finding = ", ".join(f"{item['family']} {item['text']}" for item in families)
        charts.shown(
            charts.bars(families, "family", "time_us", "text"), finding, f"kernels-{row['smoke_id'][:8]}-{phase}"
        )
    with st.expander("Every kernel name"):
        components.table(
            [
                {
                    "Kernel": components.code(item["name"]),
                    "Family": item.get("family") or "unknown",
                    "Calls": str(item["calls"]),
                }
                for item in rows
            ],
            "Executed kernels",
        )


def by_family(rows: list[Answer]) -> list[Answer]:
    """Launches and time per family, longest first."""
    sums: dict[str, list[float]] = {}
    for item in rows:
        found = sums.setdefault((item.get("family") or "unknown").replace("_", " "), [0.0, 0.0])
        found[0] += item["calls"]
        found[1] += item.get("time_us") or 0.0
    ordered = sorted(sums.items(), key=lambda pair: -pair[1][1])
    return [
        {"family": name, "time_us": time, "text": f"{calls:.0f} launches, {time:,.0f} µs"}
        for name, (calls, time) in ordered
    ]


def numbers(row: Answer) -> None:
    """The asserted checks, failed ones first; previews folded below."""
    st.subheader("Numbers", anchor=False)
    asserted = [item for item in row["numbers"] if item["asserted"]]
    failed = [item for item in asserted if item["passed"] is False]
    if not asserted:
        st.caption("This run compared no numbers.")
        return
    st.markdown(f"{len(asserted) - len(failed)} of {len(asserted)} asserted checks passed.")
    components.table([number_row(item) for item in failed], "Failed checks", "No check failed.")
    with st.expander(f"All {len(row['numbers'])} values"):
        components.table([number_row(item) for item in row["numbers"]], "Every value with its bar and result")
        st.caption("Previews use synthetic data and never stand for task accuracy.")


def number_row(item: Answer) -> Answer:
    """One check with its value, bar and result."""
    result = {True: "✓", False: "✕", None: "preview"}[item["passed"] if item["asserted"] else None]
    bar = "—" if item["bar"] is None else f"{'at least' if item['higher_is_better'] else 'at most'} {item['bar']:.4g}"
    return {
        "Check": components.plain(item["name"]),
        "Phase": item["phase"],
        "Data": item["data"] or "—",
        "Heads": item["heads"] or "—",
        "Value": f"{item['value']:.4g}",
        "Bar": bar,
        "Result": result,
    }


def contradiction(row: Answer) -> None:
    """What the run would change in the matrix, as a patch a person can commit."""
    if row["engine"] == "reference" or row["verdict"] in GOOD:
        return
    st.caption(
        "If this contradicts the matrix, `./run matrix propose REPORT.json` writes a change to review; "
        "nothing changes by itself."
    )


def history() -> None:
    """Every stored report, newest first."""
    rows = cached.smoke_history()
    components.table(
        [
            {
                "Report": f"`{row['smoke_id'][:8]}`",
                "When": row["ran_at"][:16].replace("T", " "),
                "Engine": row["engine"],
                "Release": row["release"] or "unknown",
                "GPU": components.plain(row["gpu"] or row["arch"]),
                "Cache": components.plain(row["requested"]["kv_cache_dtype"]),
                "Verdict": str(SMOKE[row["verdict"]]),
                "Reason": components.plain(row["reason"]),
            }
            for row in rows
        ],
        "Stored smoke reports",
        "No smoke report in this store yet.",
    )
    if not any(row["cuda"] for row in rows):
        st.caption("No CUDA kernel path is validated in this store yet.")
