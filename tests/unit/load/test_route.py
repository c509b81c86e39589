"""Which way to the server: never through a proxy to this host itself."""

from __future__ import annotations

import pytest

from gpu_dash.load.route import make_transport, proxy_for
from gpu_dash.model.load import Endpoint, Target

PROXY = "http://proxy.example.invalid:3128"


@pytest.mark.parametrize(
    ("variables", "url", "expected"),
    [
        ({}, "http://gpu.example.invalid:8000/v1", None),
        ({"http_proxy": PROXY}, "http://gpu.example.invalid:8000/v1", PROXY),
        ({"http_proxy": PROXY}, "https://gpu.example.invalid/v1", None),
        ({"all_proxy": PROXY}, "https://gpu.example.invalid/v1", PROXY),
        ({"http_proxy": PROXY, "no_proxy": ".example.invalid"}, "http://a.example.invalid", None),
        ({"http_proxy": PROXY}, "http://127.0.0.1:8000/v1", None),
        ({"http_proxy": PROXY}, "http://localhost:8000/v1", None),
        ({"all_proxy": PROXY}, "http://[::1]:8000/v1", None),
    ],
)
def test_the_proxy_of_the_environment(
    variables: dict[str, str], url: str, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(url) == expected


@pytest.mark.parametrize(
    ("variables", "url", "path"),
    [
        ({}, "http://127.0.0.1:8000", "direct"),
        ({}, "http://gpu.example.invalid/served/here", "direct"),
        ({}, "https://gpu.example.invalid", "httpx"),
        ({"http_proxy": PROXY}, "http://gpu.example.invalid", "httpx"),
        ({"http_proxy": PROXY}, "http://localhost:8000", "direct"),
        ({}, "http://büro.example.invalid", "httpx"),
    ],
)
def test_plain_http_goes_directly_and_the_rest_through_httpx(
    variables: dict[str, str], url: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert make_transport(Target(base_url=url, model="m"), Endpoint.CHAT).path == path
