"""GPU readings: back ends, the sampler child that runs them, and the agent's hold on it.

Driver calls can hang, crash or abort, so they are made in a child process
(:mod:`~gpu_dash.gpu.sampler`), which the agent starts, watches and replaces
(:mod:`~gpu_dash.gpu.process`). :mod:`~gpu_dash.gpu.once` is the same for one reading.
"""
