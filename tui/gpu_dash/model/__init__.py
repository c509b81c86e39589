"""What travels and what is stored: immutable typed structs, with the units in the names.

Nothing here knows a device, a socket, a file or a screen; every other package knows these.

* :mod:`~gpu_dash.model.gpu`, :mod:`~gpu_dash.model.load`, :mod:`~gpu_dash.model.server`,
  :mod:`~gpu_dash.model.log`: the facts of one area;
* :mod:`~gpu_dash.model.events`: the facts as they travel, each with its moment;
* :mod:`~gpu_dash.model.commands`: what a person asks for;
* :mod:`~gpu_dash.model.profile`: what a profile file may say;
* :mod:`~gpu_dash.model.frames`: how all of it crosses a pipe or a socket.
"""
