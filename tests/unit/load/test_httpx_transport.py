"""Which way to the server: never through a proxy to this host itself."""

from __future__ import annotations

import httpx
import pytest

from gpu_dash.load.httpx_transport import proxy_for

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
    assert proxy_for(httpx.URL(url)) == expected
