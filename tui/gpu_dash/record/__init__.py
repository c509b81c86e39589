"""A session on disk: written while it runs, read back and replayed after it.

* :mod:`~gpu_dash.record.folder`: where session folders lie and what they are called;
* :mod:`~gpu_dash.record.meta`: ``session.toml``;
* :mod:`~gpu_dash.record.columns`, :mod:`~gpu_dash.record.cells`,
  :mod:`~gpu_dash.record.rows`, :mod:`~gpu_dash.record.gpu_rows`,
  :mod:`~gpu_dash.record.journal`, :mod:`~gpu_dash.record.session_rows`: events as rows (pure);
* :mod:`~gpu_dash.record.redact`: keys taken out of what others wrote;
* :mod:`~gpu_dash.record.append`, :mod:`~gpu_dash.record.table`: a file that is whole after a
  kill and a full disk;
* :mod:`~gpu_dash.record.recorder`, :mod:`~gpu_dash.record.trouble`: the writer thread, and what
  it says when the disk fails it;
* :mod:`~gpu_dash.record.read_table`, :mod:`~gpu_dash.record.log_times`,
  :mod:`~gpu_dash.record.ticks`, :mod:`~gpu_dash.record.reader`,
  :mod:`~gpu_dash.record.replay`: the way back;
* :mod:`~gpu_dash.record.summary`, :mod:`~gpu_dash.record.card_steps`,
  :mod:`~gpu_dash.record.run`, :mod:`~gpu_dash.record.export`, :mod:`~gpu_dash.record.words`:
  what ``sessions`` shows;
* :mod:`~gpu_dash.record.report`: a session as one HTML file.
"""
