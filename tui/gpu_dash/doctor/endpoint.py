"""The HTTP surface of an OpenAI-compatible endpoint, step by step."""

from __future__ import annotations

import difflib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from gpu_dash.doctor.check import Check, fail, ok, warn
from gpu_dash.model.text import one_line
from gpu_dash.server.endpoint import is_loopback

if TYPE_CHECKING:
    import httpx

REQUEST_TIMEOUT_S = 30.0
MAX_BODY_BYTES = 8 * 2**20
"""Far above the answers to what is asked here."""
ASKED_TOKENS = 48
LONGEST_PROMPT_WORDS = 24_000
_CONTEXT_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length")
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True)
class Answer:
    """What came back: a status, and a body as text and as JSON where it is JSON."""

    status: int
    text: str
    content_type: str

    @property
    def json(self) -> Any:
        """The body as JSON; ``None`` if it is none."""
        try:
            return json.loads(self.text)
        except ValueError:
            return None

    @property
    def error(self) -> str:
        """What the body says is wrong: ``{"error": {"message": …}}``, ``{"error": "…"}``,
        ``{"detail": …}``, or its beginning."""
        body = self.json
        if isinstance(body, dict):
            for name in ("error", "detail", "message"):
                said = body.get(name)
                if isinstance(said, dict):
                    said = said.get("message") or said.get("code")
                if said:
                    return one_line(str(said))[:_SHOWN_CHARACTERS]
        return one_line(self.text.strip())[:_SHOWN_CHARACTERS]


class Endpoint:
    """Sends the requests of one examination.

    Args:
        base_url: without ``/v1``.
        key: sent as a bearer token.
    """

    def __init__(self, base_url: str, key: str | None) -> None:
        import httpx

        self.base_url = base_url
        self.api_url = f"{base_url}/v1"
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client: httpx.Client = httpx.Client(
            headers=headers, timeout=REQUEST_TIMEOUT_S, trust_env=not is_loopback(base_url)
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def get(self, url: str) -> Answer | str:
        """The answer, or in words why there is none."""
        return self._send("GET", url, None)

    def post(self, path: str, body: dict[str, Any], api_url: str | None = None) -> Answer | str:
        """The answer, or in words why there is none."""
        return self._send("POST", f"{api_url or self.api_url}/{path}", body)

    def _send(self, method: str, url: str, body: dict[str, Any] | None) -> Answer | str:
        import httpx

        deadline = time.monotonic() + REQUEST_TIMEOUT_S
        text = bytearray()
        try:
            with self._client.stream(method, url, json=body) as response:
                for chunk in response.iter_bytes():
                    text += chunk
                    if len(text) > MAX_BODY_BYTES:
                        return f"its answer passes {MAX_BODY_BYTES // 2**20} MiB and goes on"
                    if time.monotonic() > deadline:
                        return f"its answer does not end within {REQUEST_TIMEOUT_S:.0f} s"
        except httpx.HTTPError as error:
            return str(error) or type(error).__name__
        kind = response.headers.get("content-type", "")
        return Answer(response.status_code, text.decode(errors="replace"), kind)


class Examination:
    """Goes through an endpoint; what a step learns the next ones use."""

    def __init__(self, endpoint: Endpoint, model: str | None, *, has_key: bool) -> None:
        self._endpoint = endpoint
        self._model = model
        self._has_key = has_key
        self._context: int | None = None

    def checks(self) -> Iterator[Check]:
        """Every check up to the first that makes the others pointless."""
        models = self._endpoint.get(f"{self._endpoint.api_url}/models")
        if isinstance(models, str):
            yield fail(
                "http", f"no HTTP answer: {models}", "check scheme and port (http or https?)"
            )
            return
        if models.status in (401, 403):
            yield self._unauthorized(models)
            return
        if models.status >= 500:
            yield fail(
                "path", f"/v1/models says {models.status}: {models.error}", "look at its log"
            )
            return
        ids = _ids(models)
        if ids is None:
            found = self._path_without_models()
            yield from found
            if any(check.status == "fail" for check in found):
                return
        else:
            yield ok("path", f"{self._endpoint.api_url} lists {_counted(ids)}")
            model = self._check_model(ids, models)
            yield model
            if model.status == "fail":
                return
        yield from self._generation()

    def _unauthorized(self, answer: Answer) -> Check:
        said = f"{answer.status}: {answer.error}"
        if not self._has_key:
            action = "name the variable that holds the key with --api-key-env"
            return fail("auth", f"the endpoint wants a key and none was sent ({said})", action)
        if answer.status == 403:
            return fail("auth", f"the key is known and not allowed here ({said})", "ask its owner")
        action = "make sure that the key is of this endpoint and not expired; it was sent as Bearer"
        return fail("auth", f"the key is refused ({said})", action)

    def _path_without_models(self) -> list[Check]:
        """There is no list of models: a gateway without one, or a wrong path."""
        answer = self._ask(max_tokens=1)
        if not isinstance(answer, str):
            if answer.status in (401, 403):
                return [self._unauthorized(answer)]
            if answer.status == 404 and _is_about_the_model(answer):
                action = "ask the gateway's owner for the ids; it lists none"
                return [fail("model", f"{self._model} is not known: {answer.error}", action)]
            if answer.status not in (404, 405):
                detail = f"{self._endpoint.api_url} answers, and has no list of models"
                return [warn("path", detail, "name the model with --model")]
        for api_url in _other_paths(self._endpoint.base_url):
            listed = self._endpoint.get(f"{api_url}/models")
            if isinstance(listed, Answer) and (_ids(listed) or listed.status in (401, 403)):
                wrong = self._endpoint.api_url
                action = f"use --base-url {api_url}"
                if not api_url.endswith("/v1"):
                    action += (
                        "; its paths have no /v1, so a gateway with one has to stand before it"
                    )
                return [fail("path", f"nothing at {wrong}; the API is at {api_url}", action)]
        said = answer if isinstance(answer, str) else f"{answer.status} {answer.error}"
        action = "look up the base URL of the API: it is what comes before /v1/chat/completions"
        return [fail("path", f"no API at {self._endpoint.api_url} ({said})", action)]

    def _check_model(self, ids: list[str], models: Answer) -> Check:
        if not ids:
            return fail("model", "the endpoint lists no model", "load one, or ask its owner")
        if self._model is None:
            self._model = ids[0]
        if self._model not in ids:
            close = difflib.get_close_matches(self._model, ids, n=1)
            action = f"did you mean {close[0]}?" if close else "use one of those"
            known = ", ".join(ids[:10]) + (" …" if len(ids) > 10 else "")
            return fail("model", f"{self._model} is not there; there are: {known}", action)
        entry = next(one for one in models.json["data"] if one.get("id") == self._model)
        self._context = next(
            (entry[name] for name in _CONTEXT_FIELDS if isinstance(entry.get(name), int)), None
        )
        return ok("model", f"{self._model} is there")

    def _ask(
        self, *, max_tokens: int, text: str = "Count from 1 to 200.", **more: Any
    ) -> Answer | str:
        body = {
            "model": self._model,
            "messages": [{"role": "user", "content": text}],
            "max_tokens": max_tokens,
            "temperature": 0,
            **more,
        }
        return self._endpoint.post("chat/completions", body)

    def _generation(self) -> Iterator[Check]:
        answer = self._ask(max_tokens=ASKED_TOKENS)
        refused = self._refused("choices", answer)
        if refused is not None or isinstance(answer, str):
            yield refused or fail("choices", str(answer), "look at the server's log")
            return
        body = answer.json
        choices = body.get("choices") if isinstance(body, dict) else None
        if not isinstance(choices, list) or not choices:
            action = "the endpoint reports an error as success: ask its owner; do not count it"
            yield fail("choices", f"HTTP 200 without choices: {answer.error}", action)
            return
        yield ok("choices", "a request is answered with choices")
        yield self._check_cut(body)
        yield from self._streaming()
        yield self._check_context()

    def _refused(self, check: str, answer: Answer | str) -> Check | None:
        if isinstance(answer, str):
            return fail(check, f"no answer: {answer}", "look at the server's log")
        if answer.status == 200:
            return None
        if answer.status in (401, 403):
            return self._unauthorized(answer)
        if answer.status == 404 and _is_about_the_model(answer):
            return fail(
                "model", f"{self._model}: {answer.error}", "use an id that the endpoint lists"
            )
        if answer.status == 404:
            action = "the endpoint lists models, and has no chat completions"
            return fail("path", f"{self._endpoint.api_url}/chat/completions: 404", action)
        if answer.status == 429:
            return fail(check, f"429: {answer.error}", "wait, or ask for a higher limit")
        return fail(check, f"{answer.status}: {answer.error}", "look at the server's log")

    def _check_cut(self, body: dict[str, Any]) -> Check:
        usage = body.get("usage")
        got = usage.get("completion_tokens") if isinstance(usage, dict) else None
        reason = (
            body["choices"][0].get("finish_reason") if isinstance(body["choices"][0], dict) else ""
        )
        if not isinstance(got, int):
            action = "tokens can only be counted as chunks of a stream"
            return warn("tokens", "the answer has no usage.completion_tokens", action)
        if reason == "length" and got < ASKED_TOKENS:
            action = "the endpoint has a limit of its own: ask for fewer, or have it raised"
            return fail("tokens", f"{ASKED_TOKENS} tokens were asked and {got} came, cut", action)
        return ok("tokens", f"{got} of {ASKED_TOKENS} tokens came ({reason})")

    def _streaming(self) -> Iterator[Check]:
        answer = self._ask(
            max_tokens=ASKED_TOKENS, stream=True, stream_options={"include_usage": True}
        )
        refused = self._refused("streaming", answer)
        if refused is not None or isinstance(answer, str):
            yield refused or fail("streaming", str(answer), "look at the server's log")
            return
        chunks = _chunks(answer.text)
        if not chunks:
            action = "TTFT cannot be measured here; look for a proxy that gathers answers"
            yield fail("streaming", f"no stream came back ({answer.content_type})", action)
            return
        errors = [chunk["error"] for chunk in chunks if chunk.get("error")]
        if errors:
            yield fail(
                "streaming", f"an error in the stream: {errors[0]}", "look at the server's log"
            )
            return
        done = "[DONE]" in answer.text
        count = sum(bool(chunk.get("choices")) for chunk in chunks)
        if done:
            yield ok("streaming", f"{count} chunks and [DONE]")
        else:
            action = "a stream that was cut off looks the same: ask the endpoint's owner"
            yield warn("streaming", f"{count} chunks without [DONE] at the end", action)
        if any(isinstance(chunk.get("usage"), dict) for chunk in chunks):
            yield ok("usage", "the stream says how many tokens it was")
        else:
            action = "chunks will be counted in place of tokens, and the session says so"
            yield warn("usage", "the stream has no usage, though it was asked for", action)

    def _check_context(self) -> Check:
        if self._context is None:
            action = "find out from the endpoint's owner before sending long prompts"
            return warn("context", "the endpoint does not say how long a context may be", action)
        words = max(1, min(LONGEST_PROMPT_WORDS, int(self._context * 0.75)))
        answer = self._ask(max_tokens=1, text=" a" * words)
        if isinstance(answer, str):
            return fail(
                "context", f"{words:,} words: no answer: {answer}", "look at the server's log"
            )
        if answer.status != 200:
            action = f"the context is shorter than the {self._context:,} tokens that it advertises"
            return fail("context", f"{words:,} words: {answer.status} {answer.error}", action)
        body = answer.json
        usage = body.get("usage") if isinstance(body, dict) else None
        counted = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        if not isinstance(counted, int):
            action = "whether long prompts are cut cannot be told"
            return warn("context", f"{words:,} words went through, without usage", action)
        if counted < words // 2:
            action = "the endpoint cuts long prompts silently: its answers are to other questions"
            return fail("context", f"{words:,} words were sent and {counted:,} tokens read", action)
        return ok("context", f"{counted:,} prompt tokens of {self._context:,} were read")


def _ids(answer: Answer) -> list[str] | None:
    """The ids of a list of models; ``None`` if it is no such list."""
    body = answer.json
    data = body.get("data") if isinstance(body, dict) else None
    if answer.status != 200 or not isinstance(data, list):
        return None
    return [str(one["id"]) for one in data if isinstance(one, dict) and "id" in one]


def _counted(ids: list[str]) -> str:
    return f"{len(ids)} model{'' if len(ids) == 1 else 's'}"


def _is_about_the_model(answer: Answer) -> bool:
    return "model" in answer.text.lower()


def _other_paths(base_url: str) -> list[str]:
    """Where an API may be that is not below ``/v1`` of the base URL that was given."""
    parts = urlsplit(base_url)
    root = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
    below = parts.path.rstrip("/")
    paths = [below]
    while below:
        below = below.rpartition("/")[0]
        paths += [f"{below}/v1", below]
    paths += ["/v1", "/api/v1", "/openai/v1", "/api", ""]
    tried = f"{parts.path.rstrip('/')}/v1"
    unique = dict.fromkeys(path for path in paths if path != tried)
    return [f"{root}{path}" for path in sorted(unique, key=lambda path: not path.endswith("/v1"))]


def _chunks(text: str) -> list[dict[str, Any]]:
    """The JSON objects of a server-sent stream."""
    found = []
    for line in text.splitlines():
        data = line.removeprefix("data:").strip()
        if not line.startswith("data:") or data == "[DONE]":
            continue
        try:
            value = json.loads(data)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found
