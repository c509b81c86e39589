"""The calling side: keys, model names, paths, proxies.

The access log shows only the status. A 404 on the right path means the model; on another path,
the path.
"""

from __future__ import annotations

from gpu_dash.logs.rules.rule import Case, Rule, Weight
from gpu_dash.logs.rules.voice import Voice, voices

_ACCESS = voices(Voice.ACCESS)
_CLIENT = voices(Voice.CLIENT)
_ENDPOINT = (
    r"/v1/(?:chat/completions|completions|embeddings|responses|messages|score|rerank|pooling"
    r"|classify|audio/\w+)(?:/\w+)?"
)

RULES = (
    Rule(
        "client_auth",
        ("401 Unauthorized", "403 Forbidden"),
        pattern=r"HTTP/\S+ (?:401|403) ",
        voices=_ACCESS,
        matches=(
            'INFO:     127.0.0.1:46702 - "POST /v1/chat/completions HTTP/1.1" 401 Unauthorized',
        ),
        rejects=('INFO:     127.0.0.1:46702 - "POST /v1/chat/completions HTTP/1.1" 200 OK',),
    ),
    Rule(
        "client_auth",
        (
            *("401", "403", "Unauthorized", "Forbidden", "AuthenticationError"),
            *("Incorrect API key", "invalid_api_key", "Invalid API key"),
        ),
        pattern=r"(?:HTTP|code:?|status:?) ?40[13]\b|Unauthorized|Forbidden|AuthenticationError"
        r"|(?i:(?:incorrect|invalid).api.key)",
        weight=Weight.UNEXPLAINED,
        voices=_CLIENT,
        matches=(
            'client: HTTP 401 {"error":"Unauthorized"}',
            "client: openai.AuthenticationError: Error code: 401 - {'error': 'Unauthorized'}",
        ),
        rejects=("client: HTTP 500 tokens: 401",),
    ),
    Rule(
        "client_url",
        ("404 Not Found",),
        pattern=r'"(?:POST|PUT) (?P<path>/\S*) HTTP|"\w+ (?P<doubled>/v1/v1/\S*|/models) HTTP',
        unless=rf'"POST {_ENDPOINT} HTTP',
        voices=_ACCESS,
        cases=(
            Case(r'"\w+ /v1/v1', "base URL of the caller holds /v1 twice"),
            Case(
                r'"\w+ \S*/(?P<end>completions|embeddings)/\S*(?:completions|embeddings) ',
                "base URL of the caller must end at /v1, not at the end point",
            ),
            Case(
                r'"\w+ /(?:chat/completions|completions|embeddings|models)\b',
                "base URL of the caller lacks /v1",
            ),
        ),
        matches=(
            'INFO:     127.0.0.1:55950 - "POST /chat/completions HTTP/1.1" 404 Not Found',
            '(APIServer pid=88) INFO:     127.0.0.1:60122 - "POST /v1/chat/completions/chat/'
            'completions HTTP/1.1" 404 Not Found',
            'INFO:     127.0.0.1:60122 - "GET /v1/v1/models HTTP/1.1" 404 Not Found',
        ),
        rejects=(
            'INFO:     127.0.0.1:46810 - "POST /v1/chat/completions HTTP/1.1" 404 Not Found',
            'INFO:     127.0.0.1:46810 - "GET /favicon.ico HTTP/1.1" 404 Not Found',
        ),
    ),
    Rule(
        "client_model",
        ("404 Not Found",),
        pattern=rf'"POST {_ENDPOINT} HTTP',
        weight=Weight.UNEXPLAINED,
        voices=_ACCESS,
        matches=('INFO:     127.0.0.1:46810 - "POST /v1/chat/completions HTTP/1.1" 404 Not Found',),
        rejects=('INFO:     127.0.0.1:46810 - "POST /chat/completions HTTP/1.1" 404 Not Found',),
    ),
    Rule(
        "client_model",
        ("does not exist",),
        pattern=r"The model `[^`]*` does not exist",
        voices=voices(Voice.CLIENT, Voice.FAILURE, Voice.WARNING),
        cases=(
            Case(
                r"Valid aliases: (?P<names>[^\".}']+)",
                "model name of the caller: {names} is served",
            ),
        ),
        matches=(
            'client: HTTP 404 {"error":{"message":"The model `model-14b` does not exist.","type":'
            '"NotFoundError"}}',
            "(APIServer pid=14475) ERROR 11-30 18:42:46 [serving.py:274] Error with model "
            "error=ErrorInfo(message='The model `nope` does not exist.', type='NotFoundError')",
        ),
        rejects=("client: HTTP 200 the file does not exist",),
    ),
    Rule(
        "client_url",
        ("404", "405"),
        pattern=r"(?:HTTP|code:?|status:?) ?40[45]\b"
        r"|\b404 (?:page not found|Client Error|Not Found)",
        weight=Weight.UNEXPLAINED,
        voices=_CLIENT,
        matches=(
            'client: HTTP 404 {"detail":"Not Found"}',
            "client: openai.NotFoundError: Error code: 404 - {'detail': 'Not Found'}",
            "client: 404 page not found",
        ),
        rejects=(
            'client: HTTP 404 {"error":{"message":"The model `m` does not exist.","code":404}}',
        ),
    ),
    Rule(
        "client_body",
        (
            *("proxy", "choices", "502", "503", "504", "HTTP 200", "ECONNREFUSED"),
            "not subscriptable",
            *("Connection refused", "APIConnectionError", "ConnectError", "RemoteProtocolError"),
            *("Server disconnected", "incomplete chunked read"),
        ),
        pattern=r"(?i)proxy failed|(?:HTTP|code:?|status:?) ?50[234]\b|ECONNREFUSED"
        r"|connection refused|\bno\W+choices|KeyError\W+choices|choices\W+(?:null|none|missing)"
        r"|missing\W+choices|choices\W+(?:is|was|are)\W+(?:none|null|missing|empty)"
        r"|APIConnectionError|ConnectError|RemoteProtocolError|Server disconnected"
        r"|incomplete chunked read|null value for \W?choices"
        r"|no attribute \W?choices|without \W?choices|undefined \(reading \W?choices"
        r"|not subscriptable"
        r'|HTTP 200\b.*"(?:error|detail|object"\W+"error)"',
        voices=_CLIENT,
        matches=(
            "client: HTTP 502 local proxy failed: connect ECONNREFUSED 127.0.0.1:8000",
            'client: HTTP 200 {"error":{"message":"upstream busy"}}',
            "client: reply has no 'choices'",
            "client: response missing choices",
            "client: httpx.ConnectError: All connection attempts failed",
            "client: TypeError: Received response with null value for `choices`.",
        ),
        rejects=('client: HTTP 200 {"choices":[{"text":"ok"}],"usage":{"total_tokens":3}}',),
    ),
)
