"""From a URL to a socket that answers: proxy, name, connection, TLS."""

from __future__ import annotations

import os
import socket
import ssl
import urllib.request
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from gpu_dash.doctor.check import Check, CheckStatus, fail, ok, warn
from gpu_dash.server.endpoint import is_loopback

CONNECT_TIMEOUT_S = 5.0
_PROXY_VARIABLES = ("https_proxy", "http_proxy", "all_proxy")


def check_address(base_url: str, environment: Mapping[str, str] | None = None) -> Iterator[Check]:
    """The checks below HTTP, up to the first that fails."""
    for check in _checks(base_url, os.environ if environment is None else environment):
        yield check
        if check.status is CheckStatus.FAIL and check.check != "proxy":
            break


def _checks(base_url: str, environment: Mapping[str, str]) -> Iterator[Check]:
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    proxy = _check_proxies(base_url, environment)
    yield proxy
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        if _uses_proxy(base_url, environment) and proxy.status is CheckStatus.OK:
            yield warn("resolve", f"{host}: {error.strerror}", "the proxy has to know the name")
            return
        action = "look for a typing error in the host, and at /etc/resolv.conf"
        yield fail("resolve", f"{host}: {error.strerror}", action)
        return
    found = sorted({str(address[4][0]) for address in addresses})
    yield ok("resolve", f"{host} is {', '.join(found[:4])}")
    if _uses_proxy(base_url, environment) and proxy.status is CheckStatus.OK:
        yield ok("connect", "through the proxy")
        return
    connected = _connect(host, port)
    yield connected
    if connected.status is CheckStatus.OK and parts.scheme == "https":
        yield _check_tls(host, port)


def _connect(host: str, port: int) -> Check:
    try:
        with socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S):
            return ok("connect", f"{host}:{port} accepts connections")
    except ConnectionRefusedError:
        action = "start the server, or check the port; vLLM listens only once it is ready"
        return fail("connect", f"{host}:{port} refuses connections", action)
    except TimeoutError:
        action = "a firewall or a wrong address: try from the host itself"
        return fail(
            "connect", f"{host}:{port} does not answer in {CONNECT_TIMEOUT_S:.0f} s", action
        )
    except OSError as error:
        return fail("connect", f"{host}:{port}: {error.strerror}", "check address and network")


def _check_tls(host: str, port: int) -> Check:
    context = ssl.create_default_context()
    try:
        with (
            socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S) as raw,
            context.wrap_socket(raw, server_hostname=host) as wrapped,
        ):
            return ok("tls", f"{wrapped.version()}, the certificate is valid for {host}")
    except ssl.SSLCertVerificationError as error:
        action = "set SSL_CERT_FILE to the certificate of your authority, or mend the host name"
        return fail("tls", f"the certificate is refused: {error.verify_message}", action)
    except ssl.SSLError as error:
        if "WRONG_VERSION_NUMBER" in str(error) or "RECORD" in str(error):
            return fail("tls", f"{host}:{port} speaks no TLS", f"write http://{host}:{port}")
        return fail(
            "tls", f"the handshake fails: {error.reason}", "look at the server's TLS set-up"
        )
    except OSError as error:
        reason = error.strerror or "the connection closes"
        return fail("tls", f"the handshake fails: {reason}", "look at the server's TLS set-up")


def _check_proxies(base_url: str, environment: Mapping[str, str]) -> Check:
    """Whether a proxy variable points where nobody listens."""
    for name in _PROXY_VARIABLES:
        for variable in (name, name.upper()):
            value = environment.get(variable)
            if not value:
                continue
            parts = urlsplit(value if "://" in value else f"http://{value}")
            try:
                host, port = parts.hostname or "", parts.port or 80
                with socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S):
                    continue
            except (OSError, ValueError):
                where = f"{variable} points to {parts.hostname}, where nobody listens"
                action = f"unset {variable}, or set NO_PROXY for the endpoint's host"
                if _uses_proxy(base_url, environment):
                    return fail("proxy", where, action)
                return warn("proxy", f"{where}; other programs may go there", action)
    used = _uses_proxy(base_url, environment)
    return ok("proxy", "requests go through a proxy" if used else "requests go straight there")


def _uses_proxy(base_url: str, environment: Mapping[str, str]) -> bool:
    parts = urlsplit(base_url)
    if is_loopback(base_url) or urllib.request.proxy_bypass(parts.netloc):
        return False
    names = (f"{parts.scheme}_proxy", "all_proxy")
    return any(environment.get(name) or environment.get(name.upper()) for name in names)
