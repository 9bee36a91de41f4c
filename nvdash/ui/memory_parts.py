"""What the Memory page is made of: controls, tiles, charts, formula, budget, log comparison."""

from typing import Any

import streamlit as st

from nvdash.answers.words import VERDICTS, count, dtype, gib, ratio, tokens_short
from nvdash.errors import UnknownError
from nvdash.ui import cached, charts, components, uploads
from nvdash.ui.selection import Selection

AS_THE_LOG_SAYS = "As the log says"
TOKENS, FRACTION = "memory_tokens", "memory_fraction"
NOT_SIZED = ("refused", "trap")
Answer = dict[str, Any]


def controls(chosen: Selection) -> tuple[int, float | None, Any]:
    """Tokens in use and the utilisation; the header's place above them is returned for later."""
    above = st.container()
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    tokens = left.number_input(
        "Tokens in use, over all requests",
        0,
        100_000_000,
        chosen.context * chosen.requests,
        step=4_096,
        key=TOKENS,
        bind="query-params",
        help="The load: prompt and answer tokens that are in the cache at once.",
    )
    fraction = right.number_input(
        "GPU memory utilisation",
        0.05,
        1.0,
        None,
        step=0.01,
        key=FRACTION,
        bind="query-params",
        placeholder="the release's default",
        help="The fraction of the GPU that the engine may use.",
    )
    return int(tokens), fraction, above


def answer_line(answer: Answer) -> tuple[str, str]:
    """The first line: what fits and which pool binds."""
    support, pool = answer["support"] or {"verdict": "unknown"}, answer["binding_pool"]
    advice = " ".join(answer["advice"][:2])
    if support["verdict"] in NOT_SIZED:
        return "warning" if support["verdict"] == "trap" else "error", advice
    words = {
        "weights": "The weights do not fit.",
        "cache": "The weights fit; the asked requests do not.",
        "none": "It fits.",
        None: f"Which pool binds is open: {answer['binding_reason']}.",
    }
    tone = {"weights": "error", "cache": "warning", "none": "success", None: "info"}[pool]
    return tone, f"{words[pool]} {advice}"


def unsized(refusal: Answer) -> None:
    """Why the asked cache dtype has no bytes; the other dtypes are sized below."""
    components.show_error(UnknownError(**refusal))
    st.caption("The other cache dtypes of this model are sized below.")


def tiles(views: Answer) -> None:
    """Fixed, growing, left and limit: never one number."""
    answer, now = views["answer"], views["now"]
    share = "" if now["share"] is None else f"{now['share']:.0%} of the pool, "
    held = answer["requests_that_fit"]
    fits = f"{count(held['low'])} to {count(held['high'])} requests of {tokens_short(held['context'])}" if held else ""
    low, high = answer["kv_tokens_low"], answer["kv_tokens_high"]
    components.tiles(
        [
            (
                "Weights, fixed",
                gib(answer["weights_bytes"]),
                f"{answer['weights_source']}, {answer['checkpoint'] or 'no known checkpoint'}",
            ),
            (f"KV cache now, grows ({now['dtype']})", gib(now["bytes"]), f"{share}formula"),
            ("Left in the pool", left_text(now), "after tokens in use; estimate"),
            ("Pool is exhausted at", f"{components.between(low, high)} tokens", fits or answer["binding_reason"]),
        ]
    )


def left_text(now: Answer) -> str:
    """What is left, in words where it is less than nothing."""
    low, high = now["left_low"], now["left_high"]
    if low is None:
        return "unknown"
    text = f"{gib(low)} to {gib(high)}" if low != high else gib(low)
    return f"{text}, does not fit" if high < 0 else text


def growth(views: Answer, tokens: int) -> None:
    """The cache grows, the weights do not."""
    st.subheader("The cache grows, the weights do not", anchor=False)
    limit, fixed = views["limit_bytes"], views["fixed_bytes"]
    lines = [{**row, "tokens": row["tokens_low"]} for row in views["growth"] if (row.get("tokens_low") or 0) > 0]
    if limit is None or not lines:
        reason = (views["answer"] or {}).get("binding_reason") or "the memory is not known"
        st.caption(f"Nothing can be drawn: {reason}.")
    else:
        finding = "; ".join(row["label"] for row in lines)
        charts.shown(charts.memory_growth(lines, limit / 2**30, fixed / 2**30, tokens), finding, "memory_growth")
        st.caption(f"Grey is fixed: weights and runtime. The dashed line is what the engine may use. {finding}.")
    components.table([dtype_row(row) for row in views["growth"]], "Bytes per token and limit of each cache dtype")


def dtype_row(row: Answer) -> Answer:
    """One cache dtype with its verdict; a refused one is never sized as if it ran."""
    if "error" in row:
        return {
            "Cache": row["dtype"],
            "Bytes per token": "unknown",
            "KV cache tokens": "unknown",
            "Verdict": components.badge(row["verdict"]),
        }
    sized = components.between(row["tokens_low"], row["tokens_high"])
    return {
        "Cache": row["dtype"],
        "Bytes per token": count(row["bytes_per_token"]),
        "KV cache tokens": f"would be {sized}" if row["verdict"] in NOT_SIZED else sized,
        "Verdict": components.badge(row["verdict"]),
    }


def requests(views: Answer) -> None:
    """Requests that fit at once by context and precision."""
    st.subheader("Requests that fit at once", anchor=False)
    grid = views["requests"]
    rows = [{**row, "rank": rank(row), "label": cell_text(row)} for row in grid["rows"]]
    finding = "; ".join(f"{r['column']}: {r['label']}" for r in rows if r["context"] == "32K")
    charts.shown(charts.requests_grid(rows, grid["columns"]), f"At 32K: {finding}", "memory_requests")
    st.caption(
        "The low end of the budget, safe to plan with; the table has the range. 0: not one request fits; "
        "✕: the release refuses or traps it; ?: beyond the model's length, or not known."
    )
    with st.expander("The same as a table"):
        components.table(
            [
                {
                    "Weights / cache": r["column"],
                    "Context": r["context"],
                    "Requests": components.between(r["low"], r["high"]),
                    "Verdict": str(VERDICTS[r["verdict"]]),
                }
                for r in rows
            ],
            "Requests by context and precision",
        )


def cell_text(row: Answer) -> str:
    """The number that is safe to plan with, marked where the release does not run the formats."""
    mark = " ✕" if row["verdict"] in NOT_SIZED else ""
    return f"{'?' if row['low'] is None else count(row['low'])}{mark}"


def rank(row: Answer) -> float:
    """A shade by the order of magnitude, so that large counts do not hide the small ones."""
    return float(len(str(row["low"])) + row["low"] / 10 ** len(str(row["low"]))) if row["low"] else 0.0


def formula(answer: Answer) -> None:
    """Where the bytes come from, with the reader's own numbers."""
    st.subheader("Where the bytes come from", anchor=False)
    st.markdown(f"`{answer['formula']}`")
    for line in answer["explain"]:
        st.caption(line)
    st.caption(f"Allocator rules: {answer['rule']}. Printed tokens by the “{answer['kv_tokens_rule']}” rule.")
    components.table(
        [
            {"": "Formula, bytes per token", "Value": count(answer["kv_bytes_per_token"])},
            {
                "": "Predicted, KV cache tokens as this release prints them",
                "Value": components.between(answer["kv_tokens_low"], answer["kv_tokens_high"]),
            },
            {
                "": "Blocks of tokens",
                "Value": f"{components.between(answer['num_blocks_low'], answer['num_blocks_high'])} "
                f"of {count(answer['block_size'])}",
            },
            {"": "Allocated", "Value": "not measured: give a start-up log below, or run a smoke test"},
        ],
        "Formula, predicted and allocated",
    )
    for row in answer["gain"]:
        st.markdown(
            f"An NVFP4 cache holds **{ratio(row['factor'])}** the requests of {dtype(row['over'])} "
            f"for this layout at {count(row['context'])} tokens."
        )
    bound = answer["decode_bound"]
    if bound:
        st.caption(
            f"Decode step: at least {bound['step_ms_at_least']:.2f} ms, at most "
            f"{bound['tokens_per_s_at_most']:,.0f} tokens/s. {bound['label'].capitalize()}."
        )


def items(answer: Answer) -> None:
    """Every line of the budget with its range and source."""
    components.table(item_rows(answer), "Budget items with kind, range and source")


def item_rows(answer: Answer) -> list[Answer]:
    """The budget as rows."""
    names = {
        "gpu_total": "GPU total, as engines see it",
        "utilisation": "GPU memory utilisation",
        "weights": "Weights",
        "activation_peak": "Activation peak",
        "non_torch": "Outside torch",
        "cuda_graphs": "CUDA graphs",
        "kv_cache": "KV cache pool",
    }
    return [
        {
            "Item": names.get(row["item"], row["item"]),
            "Kind": row["kind"],
            **item_sizes(row),
            "Source": row["source"],
            "Detail": components.plain(row["detail"]),
        }
        for row in answer["items"]
    ]


def item_sizes(row: Answer) -> Answer:
    """Typical size and range; a line that only sets a fraction has no size."""
    if row["item"] == "utilisation":
        return {"Typical": "—", "Range": "—"}
    low, high = gib(row["low_bytes"], 2), gib(row["high_bytes"], 2)
    return {"Typical": gib(row["bytes"], 2), "Range": "exact" if low == high else f"{low} to {high}"}


def from_log() -> None:
    """Why a log says another number: predicted against printed; the log is asked, not the selectors of the sidebar."""
    st.subheader("Why does my log say another number?", anchor=False)
    with st.form("memory_log"):
        left, right = st.columns([2, 1])
        file = left.file_uploader("Start-up log of your server", key="memory_log_file", max_upload_size=50)
        models = (AS_THE_LOG_SAYS, *cached.choices().models)
        model = right.selectbox("Model of this log", models, key="memory_log_model", help="Logs often name none.")
        asked = st.form_submit_button("Compare with this log", icon=":material/compare_arrows:")
    if not asked:
        return
    if file is None:
        st.info("Choose a log file first.")
        return
    with uploads.saved([file]) as paths:
        named = {} if model == AS_THE_LOG_SAYS else {"model": model}
        question = {"log": str(paths[0]), **named}
        answer = components.asking(cached.ask_fresh, "memory", question)
    replayed = answer["question"]
    components.answer("info", components.plain(answer["sentence"]))
    st.caption(
        f"Replayed as {components.plain(replayed['model'])}, {cached.framework_name(replayed['framework'])} "
        f"{components.plain(replayed['release'])}. {answer['reading']}"
    )
    components.table([log_row(row) for row in answer["predicted_against_printed"]], "Predicted against printed")
    if answer["items"]:
        st.caption("What this server measured of its memory, within the rounding of its log")
        components.table(item_rows(answer), "Memory that this server printed")
    for note in answer["notes"]:
        st.caption(components.plain(note))


def log_row(row: Answer) -> Answer:
    """One number of the log beside its replay."""
    marks = {"consistent": "✓", "explained": "◇", "differs": "✕"}
    low, high = (round(end, 3) for end in row["predicted"]) if row["predicted"] else (None, None)
    return {
        "Number": row["label"],
        "Predicted": components.plain(exact(low) if low == high else f"{exact(low)} to {exact(high)}"),
        "Printed": components.plain(exact(row["printed"])),
        "Result": f"{marks.get(row['result'], '–')} {row['result']}",
        "Cause": components.plain(row["cause"]) or "—",
    }


def exact(value: Any) -> str:
    """A number of a log with its separators and no digit lost."""
    if value is None:
        return "—"
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def exports(views: Answer) -> None:
    """The budget as CSV, the whole answer as JSON."""
    answer = views["answer"]
    components.downloads("memory", item_rows(answer) if answer else views["growth"], views)
