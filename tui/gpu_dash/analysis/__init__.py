"""What the numbers mean: pure functions over records, results and samples.

* :mod:`~gpu_dash.analysis.percentile`: one definition of a percentile;
* :mod:`~gpu_dash.analysis.steps`: a step's requests and readings as one
  :class:`~gpu_dash.model.load.StepResult`;
* :mod:`~gpu_dash.analysis.step_gpus`: what the cards did in a step's window;
* :mod:`~gpu_dash.analysis.cards`: what each card did while there was load;
* :mod:`~gpu_dash.analysis.knee`: where more load no longer brings more throughput;
* :mod:`~gpu_dash.analysis.run`, :mod:`~gpu_dash.analysis.likeness`,
  :mod:`~gpu_dash.analysis.comparison`: sessions side by side, and what makes them unlike;
* :mod:`~gpu_dash.analysis.token_flow`: when tokens came, as far as the records say;
* :mod:`~gpu_dash.analysis.throttle_cost`: what a throttle cost in throughput;
* :mod:`~gpu_dash.analysis.verdict`: whether a run was all right, in three conditions.
"""
