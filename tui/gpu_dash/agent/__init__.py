"""The long-lived process: takes events from every source, gives them one order, keeps the
state, records it and serves it to the viewers.

* :mod:`~gpu_dash.agent.store`: events folded into one state with history (pure);
* :mod:`~gpu_dash.agent.hub`: the one road: sequence number, store, recorder, viewers;
* :mod:`~gpu_dash.agent.session`: what one launch owns: server, load, sampler, recorder;
* :mod:`~gpu_dash.agent.service`: the unix socket;
* :mod:`~gpu_dash.agent.home`: where an agent's lock, socket and state file lie;
* :mod:`~gpu_dash.agent.client`: the other end of the socket.
"""
