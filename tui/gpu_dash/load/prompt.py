"""What each request asks: the JSON body that goes to the server."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from gpu_dash.load.dataset import read_dataset
from gpu_dash.model.load import Endpoint, LoadPlan

DEFAULT_PROMPT_TOKENS = 512
"""Length of the synthetic prompt where the plan gives neither a text nor a length."""

FIRST_TOKEN_ID = 300
"""Synthetic prompts are made of the token ids from here to ``FIRST_TOKEN_ID + 255``.

Without a tokenizer, ids must be right for every model. Below about 260 byte-level and
SentencePiece vocabularies keep their special tokens and single bytes, among them the
end-of-sequence mark; above, every vocabulary has ordinary entries, and even the smallest test
models have more than 600. 256 different ids are plenty: one block of a prefix cache (16 tokens)
can be filled in 2 ** 128 ways, so no two requests share one by chance.
"""

_CALIBRATED_WITHIN = 0.02
_MOST_WORDS_PER_TOKEN = 2
"""No tokenizer joins words; a server that counts fewer is wrong (gateways send constants), and
following it would make prompts without end."""

_WORDS = (
    "time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world",
    "school", "state", "family", "student", "group", "country", "problem", "hand", "part",
    "place", "case", "week", "company", "system", "program", "question", "work", "government",
    "number", "night", "point", "home", "water", "room", "mother", "area", "money", "story",
    "fact", "month", "lot", "right", "study", "book", "eye", "job", "word", "business", "issue",
    "side", "kind", "head", "house", "service", "friend", "father", "power", "hour", "game",
    "line",
)  # fmt: skip
"""Frequent English words: with the space before it, each is one token in most vocabularies."""


class RequestBodies:
    """Makes the bodies of a plan's requests; the same seed makes the same prompts.

    Every request has a prompt of its own, so that a prefix cache does not answer for the model.

    Args:
        model: the name that requests use.
        plan: what each request asks for.
    """

    def __init__(self, model: str, plan: LoadPlan) -> None:
        self._plan = plan
        self._seed = plan.seed or random.SystemRandom().getrandbits(64)
        self._tokens = plan.prompt_tokens or DEFAULT_PROMPT_TOKENS
        self._words = self._tokens
        """Words of the next synthetic chat prompt."""
        self._dataset: list[str] = []
        if plan.dataset is not None:
            self._dataset = list(read_dataset(plan.dataset))
            random.Random(self._seed).shuffle(self._dataset)
        self._newest_request = 0
        self._words_since_request = 0
        """The first request whose prompt has that many words."""
        self._common: dict[str, Any] = {
            "model": model,
            "max_tokens": plan.output_tokens,
            # greedy, whatever the model's own settings: no sampling work that differs by model
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if plan.ignore_eos:
            self._common["ignore_eos"] = True

    def make(self, request: int) -> bytes:
        """The body of a request.

        Args:
            request: its number; with the seed it decides the prompt.
        """
        plan = self._plan
        self._newest_request = max(self._newest_request, request)
        if plan.endpoint is Endpoint.CHAT:
            text = self._given_text(request) or self._chat_text(request)
            asked: dict[str, Any] = {"messages": [{"role": "user", "content": text}]}
        else:
            asked = {"prompt": self._given_text(request) or self._ids(request)}
        return msgspec.json.encode({**self._common, **asked, **plan.extra_body})

    def learn(self, request: int, prompt_tokens: int) -> None:
        """Correct the length of synthetic chat prompts by what the server counted.

        A word is about a token and the chat template adds some; the first answers say how far
        that is off.

        Args:
            request: number of a request that was answered.
            prompt_tokens: its ``usage.prompt_tokens``.
        """
        if request < self._words_since_request or prompt_tokens <= 0 or self._dataset:
            return
        if abs(prompt_tokens - self._tokens) > _CALIBRATED_WITHIN * self._tokens:
            words = round(self._words * self._tokens / prompt_tokens)
            self._words = min(max(1, words), _MOST_WORDS_PER_TOKEN * self._tokens)
            self._words_since_request = self._newest_request + 1

    def _given_text(self, request: int) -> str | None:
        """The text of the plan or of its file; the file's in an order that the seed decides."""
        if self._dataset:
            return self._dataset[request % len(self._dataset)]
        return self._plan.prompt

    def _ids(self, request: int) -> list[int]:
        shared = round(self._plan.shared_prefix * self._tokens)
        dice = self._random(request)
        ids = self._shared().randbytes(shared) + dice.randbytes(self._tokens - shared)
        return [FIRST_TOKEN_ID + byte for byte in ids]

    def _chat_text(self, request: int) -> str:
        shared = round(self._plan.shared_prefix * self._words)
        dice = self._random(request)
        return " ".join(
            self._shared().choices(_WORDS, k=shared) + dice.choices(_WORDS, k=self._words - shared)
        )

    def _shared(self) -> random.Random:
        """What all requests have in common, in every worker."""
        return random.Random(f"{self._plan.seed}/shared")

    def _random(self, request: int) -> random.Random:
        return random.Random(f"{self._seed}/{request}")
