"""The server that serves the model: profile → command line, start, readiness, stop.

* :mod:`~gpu_dash.server.profile_file`: find, read and check profiles;
* :mod:`~gpu_dash.server.command_line`: profile → argument list and environment;
* :mod:`~gpu_dash.server.preflight`: what can be known before a launch;
* :mod:`~gpu_dash.server.keeper`: the tiny parent of the server (a process of its own);
* :mod:`~gpu_dash.server.handles`: process, container or external: start, end, stop;
* :mod:`~gpu_dash.server.supervisor`: the life of one server as events;
* :mod:`~gpu_dash.server.stages`, :mod:`~gpu_dash.server.metrics`,
  :mod:`~gpu_dash.server.endpoint`: what its log and its HTTP surface say.
"""
