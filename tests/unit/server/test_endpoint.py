"""Base URLs as people write them."""

from __future__ import annotations

import pytest

from gpu_dash.model.errors import UsageError
from gpu_dash.server.endpoint import is_loopback, normalize_base_url


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000"),
        ("https://gateway.example/llm/v1", "https://gateway.example/llm"),
        ("http://h:1/v1/v1", "http://h:1/v1"),
    ],
)
def test_one_trailing_v1_is_taken_as_given(written: str, meant: str) -> None:
    assert normalize_base_url(written) == meant


@pytest.mark.parametrize("written", ["127.0.0.1:8000", "ftp://h", "http://", "", "http://h:x"])
def test_what_is_no_url_is_refused(written: str) -> None:
    with pytest.raises(UsageError, match="http://HOST:PORT"):
        normalize_base_url(written)


@pytest.mark.parametrize(
    ("url", "expected"),
    [("http://localhost:1", True), ("http://[::1]:1", True), ("http://192.0.2.1", False)],
)
def test_loopback_is_known(url: str, expected: bool) -> None:
    assert is_loopback(url) is expected
