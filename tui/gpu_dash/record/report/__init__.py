"""A session as one HTML file that needs nothing else: no script, no font, no network.

* :mod:`~gpu_dash.record.report.markup`: elements, and the one place where text becomes HTML;
* :mod:`~gpu_dash.record.report.axis`, :mod:`~gpu_dash.record.report.series`: places, and lines of
  bounded length (pure);
* :mod:`~gpu_dash.record.report.story`, :mod:`~gpu_dash.record.report.curves`: what is read;
* :mod:`~gpu_dash.record.report.time_chart`, :mod:`~gpu_dash.record.report.session_charts`,
  :mod:`~gpu_dash.record.report.card_panels`, :mod:`~gpu_dash.record.report.load_chart`: the
  pictures;
* :mod:`~gpu_dash.record.report.head`, :mod:`~gpu_dash.record.report.tables`,
  :mod:`~gpu_dash.record.report.style`, :mod:`~gpu_dash.record.report.page`: the page;
* :mod:`~gpu_dash.record.report.write`: its file.
"""
