"""What a load plan cannot ask for at once, whoever wrote it."""

from __future__ import annotations

from gpu_dash.model.load import Endpoint, LoadPlan

_OF_THE_PLAN = {
    "model": "the model's name is said by the target",
    "prompt": "what is asked is said by prompt, prompt_tokens or dataset",
    "messages": "what is asked is said by prompt, prompt_tokens or dataset",
    "max_tokens": "the length of the answer is said by output_tokens",
    "stream": "a load is measured by its streams",
}


def conflict_of(plan: LoadPlan) -> str:
    """What contradicts itself in a plan, in words; empty if nothing does."""
    given = [
        name
        for name, is_given in (
            ("prompt", plan.prompt is not None),
            ("dataset", plan.dataset is not None),
            ("trace", plan.trace is not None),
        )
        if is_given
    ]
    if len(given) > 1:
        return f"{' and '.join(given)}: give one of them, each says what is asked"
    if plan.shared_prefix and given:
        return f"shared prefix and {given[0]}: only synthetic prompts have a shared prefix"
    if plan.turns > 1 and plan.endpoint is not Endpoint.CHAT:
        return "turns: a conversation wants the chat endpoint (--chat, or endpoint = 'chat')"
    if plan.turns > 1 and "dataset" not in given and given:
        return f"turns and {given[0]}: the turns of a conversation are synthetic, or a dataset's"
    for name, why in _OF_THE_PLAN.items():
        if name in plan.extra_body:
            return f"extra body: {name!r} cannot be in it; {why}"
    return ""
