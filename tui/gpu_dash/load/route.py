"""Which way a target's requests take: the short one where it leads there, httpx for the rest."""

from __future__ import annotations

import importlib.util
import ipaddress
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from gpu_dash.load.transport import Transport
from gpu_dash.model.load import Endpoint, Target


def takes_short_way(target: Target) -> bool:
    """Plain http, no proxy between, an address in ASCII, and the parser is installed."""
    url = urlsplit(target.base_url)
    return (
        url.scheme == "http"
        and target.base_url.isascii()
        and target.base_url.isprintable()
        and " " not in target.base_url
        and proxy_for(target.base_url) is None
        and importlib.util.find_spec("httptools") is not None
    )


async def prepare(target: Target) -> None:
    """Load what the way to this target needs, so that the first request does not wait for it."""
    if takes_short_way(target):
        importlib.import_module("gpu_dash.load.direct_transport")
    else:
        from gpu_dash.load.httpx_transport import load_ahead

        await load_ahead()


def make_transport(target: Target, endpoint: Endpoint) -> Transport:
    """The way to one endpoint of a target."""
    if takes_short_way(target):
        from gpu_dash.load.direct_transport import DirectTransport

        return DirectTransport(target, endpoint)
    from gpu_dash.load.httpx_transport import HttpxTransport

    return HttpxTransport(target, endpoint)


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for this URL; none for this host itself."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if _is_loopback(host) or proxy_bypass(host):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
