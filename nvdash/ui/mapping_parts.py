"""What the Submit page asks of a table in no known format: which field each of its columns holds."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from nvdash.ui import cached, components, selection

LEFT_OUT = "Leave out"
Answer = dict[str, Any]


def ids(files: Sequence[Any]) -> tuple[str, ...]:
    """What tells one choice of files from another."""
    return tuple(file.file_id for file in files)


def mapping_of(files: Sequence[Any]) -> dict[str, str]:
    """The mapping given for exactly these files; empty before there is one."""
    known = selection.recall("mapping")
    return dict(known[1]) if known and known[0] == ids(files) else {}


def tables_form(files: Sequence[Any], tables: Sequence[Answer], mapping: Mapping[str, str]) -> None:
    """One list per column of every table; what is chosen is read at once when the form is sent."""
    if not tables:
        return
    options = cached.column_targets()
    with st.expander("What the columns of your table hold", expanded=not mapping), st.form("submit_columns"):
        st.caption(
            "This table is in no known format. Choose the field and the unit of each column that counts; "
            "nothing is guessed, and every row becomes a run."
        )
        chosen: dict[str, str] = {}
        for number, table in enumerate(tables):
            chosen = columns(number, table, options, mapping) | chosen
        sent = st.form_submit_button("Read these columns", icon=":material/table:")
    if sent:
        selection.keep("mapping", (ids(files), chosen))
        st.rerun()


def columns(number: int, table: Answer, options: Mapping[str, str], mapping: Mapping[str, str]) -> dict[str, str]:
    """The columns of one table, three beside each other, and what was chosen for them."""
    st.markdown(f"**{components.plain(table['file'])}**")
    grid, chosen = st.grid(3, min_column_width=240), {}
    names = [LEFT_OUT, *options]
    named = {target.partition(":")[0]: target for target in reversed(list(options))}
    for place, column in enumerate(table["columns"]):
        said = mapping.get(column["column"]) or named.get(column["column"], LEFT_OUT)
        with grid.cell():
            target = st.selectbox(
                components.plain(column["column"]),
                names,
                index=names.index(said),
                format_func=lambda name: options.get(name, name),
                key=f"submit_column_{number}_{place}",
            )
            st.caption(components.plain(", ".join(cell or "—" for cell in column["cells"][:3])))
        if target != LEFT_OUT:
            chosen[column["column"]] = target
    if table["more"]:
        st.caption(
            f"The first {len(table['columns'])} columns; `./run submit --map` takes the other {table['more']} too."
        )
    return chosen
