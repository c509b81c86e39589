"""What each request asks: the JSON body that goes to the server."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from gpu_dash.load.conversation import Conversation
from gpu_dash.load.dataset import read_dataset
from gpu_dash.load.lengths import draw_tokens
from gpu_dash.load.trace import BLOCK_TOKENS, TraceEntry
from gpu_dash.model.load import Endpoint, LoadPlan

_Part = tuple[object, int]
"""A piece of a synthetic prompt: what decides its content, and its tokens."""

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
        plan: what each request asks for; its seed is not 0.
    """

    def __init__(self, model: str, plan: LoadPlan) -> None:
        self._plan = plan
        self._tokens = plan.prompt_tokens or DEFAULT_PROMPT_TOKENS
        self._words_per_token = 1.0
        """Of synthetic chat prompts, as the server counted them."""
        self._dataset: list[tuple[str, ...]] = []
        if plan.dataset is not None:
            self._dataset = list(read_dataset(plan.dataset))
            random.Random(plan.seed).shuffle(self._dataset)
        self._newest = 0
        self._learnt_before = 0
        """The first position whose prompt has that many words."""
        self._common: dict[str, Any] = {
            "model": model,
            # greedy, whatever the model's own settings: no sampling work that differs by model
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if plan.ignore_eos:
            self._common["ignore_eos"] = True

    def output_tokens(self, position: int, entry: TraceEntry | None = None, turn: int = 1) -> int:
        """How many tokens a request asks for.

        Args:
            position: which of the prompts it has.
            entry: what a trace says of it.
            turn: which turn of its conversation it is.
        """
        if entry is not None and entry.output_tokens is not None:
            return entry.output_tokens
        spread = self._plan.output_spread
        if spread is None:
            return self._plan.output_tokens
        return draw_tokens(spread, self._dice(position, turn, "length"))

    def make(self, position: int, entry: TraceEntry | None = None) -> bytes:
        """The body of a request.

        Args:
            position: which of the prompts it has; with the seed it decides what stands in it.
            entry: what a trace says of it.
        """
        self._newest = max(self._newest, position)
        text = self._given_text(position, 1) if entry is None else entry.prompt
        parts = self._parts(position) if entry is None else self._blocks(position, entry)
        if self._plan.endpoint is Endpoint.CHAT:
            return self._chat([{"role": "user", "content": text or self._words(parts)}],
                              self.output_tokens(position, entry))  # fmt: skip
        asked = {"prompt": text or self._ids(parts)}
        return self._encode(asked, self.output_tokens(position, entry))

    def make_turn(self, conversation: Conversation) -> bytes:
        """The body of the next turn of a conversation; what the user says is added to it."""
        position, turn = conversation.position, conversation.turn
        text = self._given_text(position, turn)
        text = text or self._words([((position, turn), self._tokens)] if turn > 1
                                   else self._parts(position))  # fmt: skip
        conversation.messages.append({"role": "user", "content": text})
        return self._chat(conversation.messages, self.output_tokens(position, turn=turn))

    def turns(self, conversation: Conversation) -> int:
        """How many turns a conversation has: the plan's, or what its user says in the file."""
        if not self._dataset:
            return self._plan.turns
        said = self._dataset[conversation.position % len(self._dataset)]
        return min(self._plan.turns, len(said))

    def learn(self, position: int, prompt_tokens: int) -> None:
        """Correct the length of synthetic chat prompts by what the server counted.

        A word is about a token and the chat template adds some; the first answers say how far
        that is off.

        Args:
            position: which prompt a request had that was answered.
            prompt_tokens: its ``usage.prompt_tokens``.
        """
        is_synthetic = not self._dataset and self._plan.trace is None and self._plan.prompt is None
        if position < self._learnt_before or prompt_tokens <= 0 or not is_synthetic:
            return
        if abs(prompt_tokens - self._tokens) > _CALIBRATED_WITHIN * self._tokens:
            ratio = self._words_per_token * self._tokens / prompt_tokens
            self._words_per_token = min(ratio, _MOST_WORDS_PER_TOKEN)
            self._learnt_before = self._newest + 1

    # -- prompts -------------------------------------------------------------------------------

    def _given_text(self, position: int, turn: int) -> str | None:
        """The text of the plan or of its file; the file's in an order that the seed decides."""
        if self._dataset:
            return self._dataset[position % len(self._dataset)][turn - 1]
        return self._plan.prompt

    def _parts(self, position: int) -> list[_Part]:
        shared = round(self._plan.shared_prefix * self._tokens)
        return [("shared", shared), (position, self._tokens - shared)]

    def _blocks(self, position: int, entry: TraceEntry) -> list[_Part]:
        """The blocks that a trace names, and whatever it does not name."""
        left = entry.prompt_tokens or self._tokens
        parts: list[_Part] = []
        for block in entry.blocks:
            parts.append((("block", block), min(BLOCK_TOKENS, left)))
            left -= parts[-1][1]
        return [*parts, (position, left)]

    def _ids(self, parts: list[_Part]) -> list[int]:
        ids = b"".join(self._dice(key).randbytes(tokens) for key, tokens in parts if tokens)
        return [FIRST_TOKEN_ID + byte for byte in ids]

    def _words(self, parts: list[_Part]) -> str:
        words: list[str] = []
        for key, tokens in parts:
            if count := round(tokens * self._words_per_token):
                words += self._dice(key).choices(_WORDS, k=count)
        return " ".join(words or _WORDS[:1])

    def _dice(self, *key: object) -> random.Random:
        return random.Random(f"{self._plan.seed}/{'/'.join(map(str, key))}")

    # -- bodies --------------------------------------------------------------------------------

    def _chat(self, messages: list[dict[str, str]], output_tokens: int) -> bytes:
        return self._encode({"messages": messages}, output_tokens)

    def _encode(self, asked: dict[str, Any], output_tokens: int) -> bytes:
        asked["max_tokens"] = output_tokens
        return msgspec.json.encode({**self._common, **asked, **self._plan.extra_body})
