"""Memory: what the weights take, and what every live token adds."""

import streamlit as st

from nvdash.ui import cached, components, memory_parts, selection

chosen = selection.current()
tokens, fraction, controls = memory_parts.controls(chosen)
question = chosen.memory_question(gpu_memory_utilization=fraction)
title, fixed = "Memory", f"{components.fixed_line(chosen)} · all numbers are per GPU"
with components.titled(title, fixed, controls), st.skeleton(height=420):
    views = components.asking(cached.ask, "memory_views", question, tokens=tokens)
answer = views["answer"]

with controls:
    components.header(title, fixed, lambda: memory_parts.exports(views))
    if answer:
        components.answer(*memory_parts.answer_line(answer))
        components.notes(*answer["notes"])
    else:
        memory_parts.unsized(views["refusal"])
if answer:
    memory_parts.tiles(views)
left, right = st.columns(2, gap="large")
with left:
    memory_parts.growth(views, tokens)
with right:
    memory_parts.requests(views)
if answer:
    memory_parts.formula(answer)
    memory_parts.items(answer)
memory_parts.from_log()
components.command(selection.command("memory", question))
