"""Overview: one configuration answers at a glance."""

import streamlit as st

from nvdash.ui import cached, components, overview_parts, selection

chosen = selection.current()
question = chosen.memory_question()
title = f"{chosen.model} on {chosen.count} × {cached.gpu_label(chosen.gpu)}"
with components.titled(title, components.fixed_line(chosen)), st.skeleton(height=420):
    answer = components.asking(cached.ask, "overview", question)
support, memory = answer["support"], answer["memory"]

resolved = components.fixed_line(chosen, support["resolved"]["backend"])
components.header(title, resolved, lambda: overview_parts.exports(answer))
components.answer(answer["tone"], answer["sentence"])
components.notes(*overview_parts.notes(answer))
for conflict in support["conflicts"]:
    st.error(f"Source and observation disagree: {components.plain(conflict)}")

overview_parts.then_and_now(chosen, answer)
if overview_parts.blocked(answer):
    overview_parts.refusal(chosen, answer)
else:
    components.tiles(answer["tiles"])

left, right = st.columns([2, 1], gap="large")
with left:
    st.subheader("Does each stage run?", anchor=False)
    components.table(components.stage_rows(support, answer["since"]), "Verdict, path and evidence of each stage")
with right:
    st.subheader("Do next", anchor=False)
    overview_parts.next_steps(chosen, answer)

st.subheader("Memory on one GPU, GiB", anchor=False)
overview_parts.memory_bars(memory)
overview_parts.published(answer)
overview_parts.compare(chosen, answer)
overview_parts.guide(chosen)
components.command(selection.command("check", chosen.question()))
components.command(selection.command("memory", question), "The memory answer on the command line")
