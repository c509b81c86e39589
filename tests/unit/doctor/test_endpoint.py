"""Each fault that a gateway can have is found, said, and given an action."""

from __future__ import annotations

import json
import socket
import ssl
from typing import NoReturn

import pytest
from click.testing import CliRunner

from gpu_dash.cli.doctor import command
from gpu_dash.doctor.check import Check, CheckStatus
from gpu_dash.doctor.endpoint import Answer
from gpu_dash.doctor.examine import examine_endpoint
from tests.fakes.gateway import KEY, Gateway, stub_gateway


def listed(url: str, model: str | None, variable: str | None, key: str | None) -> list[Check]:
    return list(examine_endpoint(url, model, variable, key))


def examine(gateway: Gateway, *, path: str = "/v1", key: str | None = None) -> dict[str, Check]:
    variable = None if key is None else "TEST_KEY"
    checks = listed(gateway.url + path, None, variable, key)
    return {check.check: check for check in checks}


def failed(checks: dict[str, Check]) -> set[str]:
    return {name for name, check in checks.items() if check.status is CheckStatus.FAIL}


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
def test_a_sound_endpoint_passes_every_check(path: str) -> None:
    with stub_gateway() as gateway:
        checks = examine(gateway, path=path)

    assert {check.status for check in checks.values()} == {CheckStatus.OK}
    assert {
        "resolve",
        "connect",
        "path",
        "model",
        "choices",
        "tokens",
        "streaming",
        "usage",
    } <= set(checks)
    assert checks["context"].detail == "1,536 prompt tokens of 2,048 were read"


@pytest.mark.parametrize(
    ("fault", "check", "said"),
    [
        ("no_choices", "choices", "without choices"),
        ("error_in_200", "choices", "upstream is overloaded"),
        ("no_stream", "streaming", "no stream came back"),
        ("cut_tokens", "tokens", "48 tokens were asked and 8 came"),
        ("cut_prompt", "context", "1,536 words were sent and 300 tokens read"),
        ("short_context", "context", "400 This model's context is 500 tokens"),
        ("rate_limited", "choices", "429: Too many requests"),
    ],
)
def test_a_fault_fails_its_check(fault: str, check: str, said: str) -> None:
    with stub_gateway(fault=fault) as gateway:
        checks = examine(gateway)

    assert failed(checks) == {check}
    assert said in checks[check].detail
    assert checks[check].action


@pytest.mark.parametrize(
    ("fault", "check"), [("no_usage", "usage"), ("no_done", "streaming"), ("no_models", "path")]
)
def test_what_is_only_missing_is_a_warning(fault: str, check: str) -> None:
    with stub_gateway(fault=fault) as gateway:
        found = listed(gateway.url, "served-model", None, None)

    assert {one.check for one in found if one.status is CheckStatus.WARN} >= {check}
    assert not [one for one in found if one.status is CheckStatus.FAIL]


@pytest.mark.parametrize("fault", ["", "string_error"])
def test_a_missing_key_and_a_wrong_one_are_told_apart(fault: str) -> None:
    with stub_gateway(key=KEY, fault=fault) as gateway:
        missing, wrong = examine(gateway), examine(gateway, key="another-key-987654")
        right = examine(gateway, key=KEY)

    assert "none was sent" in missing["auth"].detail
    assert "--api-key-env" in str(missing["auth"].action)
    assert "the key is refused" in wrong["auth"].detail
    assert not failed(right)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (f" {KEY}", "spaces"),
        (f"{KEY}\n", "line end"),
        (f'"{KEY}"', "quotes"),
        (f"Bearer {KEY}", "Bearer"),
        ("   ", "blank"),
        ("two keys-in-one", "spaces inside"),
        ("schlüssel-1234", "characters"),
    ],
)
def test_a_key_that_was_pasted_badly_is_found_before_it_is_sent(key: str, said: str) -> None:
    with stub_gateway(key=KEY) as gateway:
        checks = examine(gateway, key=key)

    assert checks["key"].status is CheckStatus.FAIL
    assert said in checks["key"].detail


@pytest.mark.parametrize(
    ("prefix", "given", "right"),
    [
        ("/v1", "/v1/v1", "/v1"),
        ("/api/v1", "", "/api/v1"),
        ("/api/v1", "/v1", "/api/v1"),
        ("/v1", "/api", "/v1"),
        ("/api", "/api", "/api"),
        ("/v1", "/v1/chat/completions", "/v1"),
    ],
)
def test_the_right_url_is_found_behind_a_wrong_one(prefix: str, given: str, right: str) -> None:
    with stub_gateway(prefix=prefix) as gateway:
        checks = examine(gateway, path=given)

    assert failed(checks) == {"path"}
    assert checks["path"].action is not None
    assert checks["path"].action.split(";")[0] == f"use --base-url {gateway.url}{right}"


def test_a_path_that_leads_nowhere_is_no_missing_model() -> None:
    with stub_gateway(prefix="/deep/below/v1") as gateway:
        checks = examine(gateway)

    assert failed(checks) == {"path"}
    assert "no API at" in checks["path"].detail


def test_an_unknown_model_comes_with_those_that_exist() -> None:
    with stub_gateway(models=("qwen3-32b", "qwen3-8b")) as gateway:
        found = listed(gateway.url, "qwen3-32", None, None)

    (model,) = [check for check in found if check.check == "model"]
    assert model.status is CheckStatus.FAIL
    assert model.detail == "qwen3-32 is not there; there are: qwen3-32b, qwen3-8b"
    assert model.action == "did you mean qwen3-32b?"


def test_a_model_that_no_list_names_is_told_from_a_wrong_path() -> None:
    with stub_gateway(fault="no_models") as gateway:
        found = listed(gateway.url, "nobody", None, None)

    assert [check.check for check in found if check.status is CheckStatus.FAIL] == ["model"]


def test_a_port_where_nobody_listens_ends_the_checks() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        found = listed(f"http://127.0.0.1:{bound.getsockname()[1]}", None, None, None)

    assert found[-1].check == "connect"
    assert found[-1].status is CheckStatus.FAIL


def test_https_to_a_port_that_speaks_http() -> None:
    with stub_gateway() as gateway:
        found = listed(gateway.url.replace("http:", "https:"), None, None, None)

    assert (found[-1].check, found[-1].status) == ("tls", CheckStatus.FAIL)
    assert found[-1].action == f"write {gateway.url}"


def test_a_proxy_variable_that_points_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with stub_gateway() as gateway:
        near = examine(gateway)
    far = listed("http://192.0.2.1:8000", None, None, None)

    assert near["proxy"].status is CheckStatus.WARN
    assert not failed(near)
    (proxy,) = [check for check in far if check.check == "proxy"]
    assert proxy.status is CheckStatus.FAIL
    assert "HTTP_PROXY" in proxy.detail


def test_the_key_is_never_shown_even_if_the_endpoint_repeats_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", " wrong-secret-4711 ")
    with stub_gateway(key=KEY, fault="echo_key") as gateway:
        arguments = ["--base-url", gateway.url, "--api-key-env", "GATEWAY_KEY", "--json"]
        result = CliRunner().invoke(command, arguments, standalone_mode=False)

    rows = json.loads(result.output)
    assert "4711" not in result.output
    assert result.return_value == 1
    assert {"check", "status", "detail", "action"} == set(rows[0])
    assert {row["status"] for row in rows} <= {"ok", "warn", "fail"}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"error": {"message": "no such thing", "code": 400}}', "no such thing"),
        ('{"error": {"code": "context_length_exceeded"}}', "context_length_exceeded"),
        ('{"error": "Unauthorized"}', "Unauthorized"),
        ('{"detail": "Not Found"}', "Not Found"),
        ('{"message": "quota is used up"}', "quota is used up"),
        ("<html>502 Bad Gateway</html>", "<html>502 Bad Gateway</html>"),
        ('["a", "list"]', '["a", "list"]'),
        ("", ""),
        ('{"error": {"message": "two\\nlines \\u001b[31mred"}}', "two ⏎ lines"),
    ],
)
def test_what_an_error_body_says_in_any_of_its_forms(body: str, said: str) -> None:
    error = Answer(400, body, "application/json").error

    assert error.startswith(said)
    assert "\x1b" not in error
    assert "\n" not in error


def test_a_name_that_nobody_knows_ends_the_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*asked: object, **options: object) -> NoReturn:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    found = listed("http://gateway.invalid:8000", None, None, None)

    assert (found[-1].check, found[-1].status) == ("resolve", CheckStatus.FAIL)
    assert "Name or service not known" in found[-1].detail


def test_a_certificate_that_is_refused_is_told_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Refusing:
        def wrap_socket(self, *asked: object, **options: object) -> NoReturn:
            error = ssl.SSLCertVerificationError(1, "certificate verify failed")
            error.verify_message = "self-signed certificate"
            raise error

    monkeypatch.setattr(ssl, "create_default_context", Refusing)
    with stub_gateway() as gateway:
        found = listed(gateway.url.replace("http:", "https:"), None, None, None)

    assert (found[-1].check, found[-1].status) == ("tls", CheckStatus.FAIL)
    assert "self-signed certificate" in found[-1].detail
    assert "SSL_CERT_FILE" in str(found[-1].action)


def test_an_answer_that_is_an_error_of_the_server_is_told_as_such() -> None:
    with stub_gateway(fault="server_error") as gateway:
        checks = examine(gateway)

    assert failed(checks) == {"choices"}
    assert "500: upstream broke" in checks["choices"].detail


@pytest.mark.parametrize("path", ["/api", "/api/v1"])
def test_the_gateway_of_taotoken_works_with_and_without_v1(path: str) -> None:
    """Its base is ``https://taotoken.net/api``; its paths are below ``/api/v1``."""
    with stub_gateway(prefix="/api/v1", key=KEY) as gateway:
        checks = examine(gateway, path=path, key=KEY)

    assert not failed(checks)


def test_an_answer_without_an_end_is_left() -> None:
    with stub_gateway(fault="endless") as gateway:
        checks = examine(gateway)

    assert failed(checks) == {"choices"}
    assert "passes 8 MiB" in checks["choices"].detail
