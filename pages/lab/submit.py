"""Submit results: recognise, look, fill the gaps, store, undo."""

import streamlit as st

from nvdash.ui import components, mapping_parts, preview_parts, selection, submit_parts

selection.current()
components.header(
    "Submit results",
    "A result file says how fast it went; a server log or metrics page says what was served. "
    "The sidebar is not applied to your upload.",
    submit_parts.exports,
)
submit_parts.undone()
submit_parts.outcome()
files = st.file_uploader(
    "Result file, server log, metrics page",
    accept_multiple_files=True,
    key=submit_parts.uploader(),
    max_upload_size=submit_parts.MAX_FILE_MB,
    help="Files of one run; .gz too.",
)
if files and not selection.recall("stored"):
    mapping = mapping_parts.mapping_of(files)
    preview = submit_parts.preview_of(files, mapping)
    preview_parts.recognised(preview)
    mapping_parts.tables_form(files, preview["tables"], mapping)
    preview_parts.beside(preview)
    typed = submit_parts.gaps_form(preview)
    if typed is not None:
        submit_parts.store(files, typed, mapping)
else:
    submit_parts.before_upload()
submit_parts.stored_runs()
components.command("./run submit RESULT.json SERVER.log METRICS.txt --set gpu=h200-sxm")
