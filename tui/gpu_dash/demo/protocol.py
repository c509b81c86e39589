"""The bodies that the OpenAI routes take, and the words with which vLLM refuses them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus

_SHORTEST_ANSWER, _LONGEST_ANSWER = 64, 192
_GOLDEN_RATIO = 0.618033988749895
_CHARACTERS_PER_TOKEN = 4
_TOKENS_PER_MESSAGE = 4
"""What a chat template adds around each message."""
_MOST_CHARACTERS_PER_TOKEN = 13
"""vLLM refuses a longer text without counting its tokens."""
_DEFAULT_COMPLETION_TOKENS = 16


class ApiError(Exception):
    """A request that is refused; ``body`` is what the client reads.

    The shape is the same for all refusals but the one for a missing key, whose ``error`` is a
    string.
    """

    def __init__(self, status: HTTPStatus, message: str, kind: str, param: str | None = None):
        super().__init__(message)
        self.status = status
        self.body = error_body(status, message, kind, param)


@dataclass(frozen=True, slots=True)
class Generation:
    """What a client asked for, within what the model can do."""

    chat: bool
    model: str
    prompt_tokens: int
    output_tokens: int
    ends_with: str
    stream: bool
    include_usage: bool
    usage_in_every_chunk: bool


@dataclass(frozen=True, slots=True)
class ModelCard:
    """The model as the server offers it."""

    names: tuple[str, ...]
    """The names that requests may use; the first one labels the metrics."""
    root: str
    max_model_len: int


def error_body(status: int, message: str, kind: str, param: str | None = None) -> bytes:
    """vLLM's error object."""
    error = {"message": message, "type": kind, "param": param, "code": int(status)}
    return json.dumps({"error": error}, separators=(",", ":")).encode()


def natural_length(serial: int) -> int:
    """Output tokens after which an answer ends by itself, unless ``ignore_eos`` is asked for.

    Spread evenly over a range, differently for each request: streams that begin together do not
    all end together, as real ones do not.
    """
    spread = _LONGEST_ANSWER - _SHORTEST_ANSWER + 1
    return _SHORTEST_ANSWER + int(spread * (serial * _GOLDEN_RATIO % 1))


def read_generation(
    body: bytes, content_type: str, *, chat: bool, card: ModelCard, natural_tokens: int
) -> Generation:
    """Read and check the body of ``/v1/completions`` or ``/v1/chat/completions``.

    Args:
        body: as it came.
        content_type: the header.
        chat: which of the two it is.
        card: the model that answers.
        natural_tokens: where the answer ends by itself.

    Raises:
        ApiError: with the status and the words of vLLM.
    """
    fields = _read_object(body, content_type)
    name = "messages" if chat else "prompt"
    if fields.get(name) is None:
        raise _invalid("missing", f"body.{name}", "Field required")
    asked = _read_max_tokens(fields, chat=chat, card=card)
    model = _read_model(fields, card)
    temperature = fields.get("temperature")
    if isinstance(temperature, int | float) and temperature < 0:
        raise _out_of_range("temperature", temperature, "must be non-negative")
    prompt_tokens = _count_messages(fields[name]) if chat else _count_prompt(fields[name], card)
    _check_context(prompt_tokens, card)
    # A prompt and an answer that fit only one by one are cut without a word.
    room = card.max_model_len - prompt_tokens
    default = room if chat else _DEFAULT_COMPLETION_TOKENS
    limit = min(default if asked is None else asked, room)
    stops_by_itself = not fields.get("ignore_eos") and natural_tokens < limit
    options = _stream_options(fields)
    return Generation(
        chat=chat,
        model=model,
        prompt_tokens=prompt_tokens,
        output_tokens=natural_tokens if stops_by_itself else limit,
        ends_with="stop" if stops_by_itself else "length",
        stream=bool(fields.get("stream")),
        include_usage=bool(options.get("include_usage")),
        usage_in_every_chunk=bool(options.get("continuous_usage_stats")),
    )


def _read_max_tokens(fields: dict[str, object], *, chat: bool, card: ModelCard) -> int | None:
    asked = _integer(fields, "max_tokens")
    if chat and asked is None:
        asked = _integer(fields, "max_completion_tokens")
    if asked is not None and asked > card.max_model_len:
        raise _bad_value(
            f"max_tokens={asked} cannot be greater than max_model_len={card.max_model_len}. "
            "Please request fewer output tokens.",
            "max_tokens",
            asked,
        )
    if asked is not None and asked < 1:
        raise _out_of_range("max_tokens", asked, "must be at least 1")
    return asked


def _read_model(fields: dict[str, object], card: ModelCard) -> str:
    model = fields.get("model") or card.names[0]
    if not isinstance(model, str) or model not in card.names:
        raise ApiError(
            HTTPStatus.NOT_FOUND,
            f"The model `{model}` does not exist. Valid aliases: {', '.join(card.names)}.",
            "NotFoundError",
            "model",
        )
    return model


def _read_object(body: bytes, content_type: str) -> dict[str, object]:
    if content_type.partition(";")[0].strip().lower() != "application/json":
        text = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
        raise ApiError(HTTPStatus.BAD_REQUEST, text, "Bad Request")
    try:
        fields = json.loads(body)
    except json.JSONDecodeError as error:
        raise _invalid(
            "json_invalid",
            f"body.{error.pos}",
            "JSON decode error",
            f", 'input': '<dict of 0 items>', 'ctx': {{'error': '{error.msg}'}}",
        ) from None
    except UnicodeDecodeError:
        raise _invalid("json_invalid", "body.0", "JSON decode error") from None
    if not isinstance(fields, dict):
        raise _invalid("model_attributes_type", "body", "Input should be a valid dictionary")
    return fields


def _stream_options(fields: dict[str, object]) -> dict[str, object]:
    options = fields.get("stream_options") or {}
    if not isinstance(options, dict):
        location = "body.stream_options"
        raise _invalid("model_type", location, "Input should be a valid dictionary")
    return options


def _integer(fields: dict[str, object], name: str) -> int | None:
    value = fields.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise _invalid(
        "int_parsing",
        f"body.{name}",
        "Input should be a valid integer, unable to parse string as an integer",
        f", 'input': '{value}'",
    )


def _count_prompt(prompt: object, card: ModelCard) -> int:
    """Tokens of a completion prompt: a text, token ids, or one of either in a list."""
    match prompt:
        case str():
            return _count_text(prompt, card)
        case [str() as text]:
            return _count_text(text, card)
        case [[*ids]] | [*ids] if ids and all(isinstance(item, int) for item in ids):
            return len(ids)
    raise _invalid(
        "value_error", "body.prompt", "Input should be one text or one list of token ids"
    )


def _count_messages(messages: object) -> int:
    if not isinstance(messages, list) or not messages:
        raise _invalid("list_type", "body.messages", "Input should be a valid list")
    tokens = 0
    for message in messages:
        if not isinstance(message, dict):
            raise _invalid("dict_type", "body.messages.0", "Input should be a valid dictionary")
        tokens += _TOKENS_PER_MESSAGE + _tokens_of(_text_of(message.get("content")))
    return tokens


def _text_of(content: object) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def _count_text(text: str, card: ModelCard) -> int:
    bound = _MOST_CHARACTERS_PER_TOKEN * card.max_model_len
    if len(text) > bound:
        raise _bad_value(
            f"This model's maximum context length is {card.max_model_len} tokens. However, your "
            f"prompt contains {len(text)} characters (more than {bound} characters, which is the "
            f"upper bound for {card.max_model_len} input tokens). Please reduce the length of "
            "the input prompt.",
            "input_text",
            len(text),
        )
    return _tokens_of(text)


def _tokens_of(text: str) -> int:
    return max(1, -(-len(text) // _CHARACTERS_PER_TOKEN))


def _check_context(prompt_tokens: int, card: ModelCard) -> None:
    if prompt_tokens >= card.max_model_len:
        raise _bad_value(
            f"This model's maximum context length is {card.max_model_len} tokens. However, your "
            f"prompt contains {prompt_tokens} input tokens, which exceeds this limit even "
            "without any output tokens. Please reduce the length of the input prompt.",
            "input_tokens",
            prompt_tokens,
        )


def _invalid(kind: str, location: str, message: str, rest: str = "") -> ApiError:
    text = f"1 validation error:\n  {{'type': '{kind}', 'loc': '{location}', 'msg': '{message}'"
    return ApiError(HTTPStatus.BAD_REQUEST, f"{text}{rest}}}", "Bad Request", location)


def _out_of_range(name: str, value: float, must: str) -> ApiError:
    return _bad_value(f"{name} {must}, got {value}.", name, value)


def _bad_value(message: str, param: str, value: float) -> ApiError:
    text = f"{message} (parameter={param}, value={value})"
    return ApiError(HTTPStatus.BAD_REQUEST, text, "BadRequestError", param)
