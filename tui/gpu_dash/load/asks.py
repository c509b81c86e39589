"""What each request of a plan asks: which prompt, how many tokens, whose turn of what."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from gpu_dash.load.conversation import Conversation, Conversations
from gpu_dash.load.prompt import RequestBodies
from gpu_dash.load.trace import TraceEntry, read_trace
from gpu_dash.model.load import LoadPlan


@dataclass(frozen=True)
class Ask:
    """What one request asks; its body is made when it is sent."""

    position: int
    """Which of the prompts it has."""
    plan: LoadPlan
    """The plan, with the tokens that this request asks for."""
    entry: TraceEntry | None = None
    """What a trace says of it."""
    conversation: Conversation | None = None
    """Whose turn it is."""


class Asks:
    """Decides what is asked, request by request.

    Args:
        model: the name that requests use.
        plan: what they have in common.
    """

    def __init__(self, model: str, plan: LoadPlan) -> None:
        self._plan = plan
        self._bodies = RequestBodies(model, plan)
        self._conversations = Conversations() if plan.turns > 1 else None
        self.trace = () if plan.trace is None else read_trace(plan.trace)
        """The requests of the plan's trace."""

    def next(self, request: int, position: int, entry: TraceEntry | None = None) -> Ask:
        """What the next request asks.

        Args:
            request: its number.
            position: which of the prompts it has, unless it goes on with a conversation.
            entry: what a trace says of it.
        """
        conversation, turn = None, 1
        if self._conversations is not None and entry is None:
            conversation = self._conversations.next_turn(request, position)
            position, turn = conversation.position, conversation.turn
        tokens = self._bodies.output_tokens(position, entry, turn)
        plan = self._plan
        if tokens != plan.output_tokens:
            plan = msgspec.structs.replace(plan, output_tokens=tokens)
        return Ask(position, plan, entry, conversation)

    def body(self, ask: Ask) -> bytes:
        """The body of the request."""
        if ask.conversation is not None:
            return self._bodies.make_turn(ask.conversation)
        return self._bodies.make(ask.position, ask.entry)

    def counted(self, ask: Ask, prompt_tokens: int) -> None:
        """The server said how long the prompt was."""
        if ask.conversation is None or ask.conversation.turn == 1:
            self._bodies.learn(ask.position, prompt_tokens)

    def answered(self, conversation: Conversation, text: str) -> None:
        """A turn was answered in full: the conversation goes on, if it has another one."""
        if self._conversations is not None:
            turns = self._bodies.turns(conversation)
            self._conversations.answered(conversation, text, turns=turns)
