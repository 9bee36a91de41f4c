"""Remarks about values that are possible but rarely true; they mark a run and never change it.

Every rule was seen to catch a real mistake in a real file.
"""

from collections.abc import Callable, Iterable, Iterator

from nvdash.readers.record import QualityRow, Remark, Run, to_number

Check = Callable[[Run], str | None]


def _number(run: Run, name: str) -> float | None:
    value = run.get(name)
    return None if value == "inf" else to_number(value)


def _pair(run: Run, first: str, second: str) -> tuple[float, float] | None:
    """Both numbers, when both are known and the second is not zero."""
    above, below = _number(run, first), _number(run, second)
    return (above, below) if above is not None and below else None


def saturated(run: Run) -> str | None:
    """The server was asked for much more than it served: latencies are queueing."""
    rates = _pair(run, "request_throughput_rps", "request_rate_rps")
    if rates and rates[0] < 0.8 * rates[1]:
        return f"saturated: {rates[1]:g} requests/s offered, {rates[0]:.3g} served; the time to first token is queueing"
    return None


def output_length(run: Run) -> str | None:
    """The answers are far from the length that was asked for; a target that is drawn from evenly gives half of it."""
    lengths = _pair(run, "osl_mean", "osl_target")
    if lengths and not 0.4 <= lengths[0] / lengths[1] <= 1.5:
        return f"mean output length {lengths[0]:.0f} against {lengths[1]:.0f} asked for: check the client"
    return None


def prefill_speed(run: Run) -> str | None:
    """A prompt that was answered faster than it can be read: it was in the prefix cache."""
    prompt = _pair(run, "isl_mean", "ttft_p50_ms") or _pair(run, "isl_mean", "ttft_mean_ms")
    gpus = _number(run, "gpu_count") or _number(run, "tp") or 1
    if prompt and prompt[0] >= 1024 and prompt[0] / prompt[1] * 1000 > 100_000 * gpus:
        return f"{prompt[0]:.0f} prompt tokens in {prompt[1]:.3g} ms: prefix-cache hits?"
    return None


def draft_acceptance(run: Run) -> str | None:
    """A draft head whose tokens are almost always thrown away."""
    accepted = _number(run, "spec_decode_acceptance_rate_pct")
    if accepted is not None and accepted < 25:
        return f"only {accepted:.3g} % of the draft tokens were accepted: is the draft head the right one?"
    return None


def lost_requests(run: Run) -> str | None:
    """Requests that neither completed nor failed."""
    sent, done = _number(run, "num_prompts"), _number(run, "requests_completed")
    lost = (sent or 0) - (done or 0) - (_number(run, "requests_failed") or 0)
    return f"{lost:.0f} of {sent:.0f} requests are missing from the counts" if sent and done and lost > 0 else None


def failed_requests(run: Run) -> str | None:
    """More than one request in a hundred failed."""
    failed, done = _number(run, "requests_failed"), _number(run, "requests_completed")
    if failed and done and failed > 0.01 * (failed + done):
        return f"{failed:.0f} of {failed + done:.0f} requests failed"
    return None


def chunked_gaps(run: Run) -> str | None:
    """The gap between chunks is well above the time per token: chunks hold several tokens."""
    gaps = _pair(run, "itl_mean_ms", "tpot_mean_ms")
    if gaps and gaps[0] > 1.3 * gaps[1]:
        return f"chunks hold several tokens: {gaps[0]:.3g} ms between chunks, {gaps[1]:.3g} ms per token"
    return None


def time_sum(run: Run) -> str | None:
    """First token plus the rest must give the whole request."""
    first, step = _number(run, "ttft_mean_ms"), _number(run, "tpot_mean_ms")
    whole, length = _number(run, "e2e_mean_ms"), _number(run, "osl_mean")
    if None in (first, step, whole, length) or not whole:
        return None
    total = (first or 0) + (step or 0) * max((length or 0) - 1, 0)
    if not 0.5 <= total / whole <= 2:
        return f"the times do not add up: {total:.3g} ms from parts, {whole:.3g} ms as a whole; check the units"
    return None


def rate_sum(run: Run) -> str | None:
    """Tokens by time must give the rate that the file states."""
    tokens, rate = _pair(run, "output_tokens_total", "duration_s"), _number(run, "output_tok_s")
    if tokens and rate and not 0.8 <= tokens[0] / tokens[1] / rate <= 1.25:
        return f"output throughput {rate:.4g} tokens/s, but the counts give {tokens[0] / tokens[1]:.4g}"
    return None


def few_requests(run: Run) -> str | None:
    """So few requests that the first ones, which warm up, weigh in."""
    done = _number(run, "requests_completed")
    if run.get("kind") == "serving" and done and done < max(10, 2 * (_number(run, "max_concurrency") or 0)):
        return f"only {done:.0f} requests: the warm-up weighs in"
    return None


RUN_CHECKS: dict[str, Check] = {
    "saturated": saturated,
    "output_length": output_length,
    "prefix_cache": prefill_speed,
    "draft_acceptance": draft_acceptance,
    "lost_requests": lost_requests,
    "failed_requests": failed_requests,
    "chunked_gaps": chunked_gaps,
    "time_sum": time_sum,
    "rate_sum": rate_sum,
    "few_requests": few_requests,
}


def remarks(runs: Iterable[Run], quality: Iterable[QualityRow]) -> Iterator[Remark]:
    """Every remark about these runs and scores."""
    for number, run in enumerate(runs):
        for code, check in RUN_CHECKS.items():
            if text := check(run):
                yield Remark(code, text, number)
    yield from _quality_remarks(list(quality))


def _quality_remarks(rows: list[QualityRow]) -> Iterator[Remark]:
    partial = {row.task for row in rows if row.n_effective and row.n_original and row.n_effective < row.n_original}
    if partial:
        yield Remark("partial_task", f"only part of the samples was used: {', '.join(sorted(partial))}")
    coarse = {row.task for row in rows if row.stderr is not None and row.stderr >= 0.03 and not row.is_group}
    if coarse:
        names = ", ".join(sorted(coarse))
        yield Remark(
            "few_samples", f"a standard error of 3 points or more, too few samples to tell formats apart: {names}"
        )
