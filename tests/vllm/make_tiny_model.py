"""Make a chat model with random weights that a real vLLM serves on a CPU.

    python make_tiny_model.py FOLDER

Qwen3 in shape, 180,000 parameters, under 1 MB. Nothing is downloaded: the tokenizer is trained
on the text below. Run with the Python of vLLM's environment, which has the three libraries.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

END_OF_TEXT, START_OF_TURN, END_OF_TURN = SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
)

TRAINING_TEXT = """
The operator opens the dashboard and looks at the graphs before the first request arrives.
A server that answers its health check is not always a server that answers its users.
Watch the temperature, the power draw and the clock: when it falls, something is throttling.
The queue grows when requests come in faster than tokens go out; then the first token is late.
Stop the process gently, wait for the workers to leave, and only then start the next one.
A card at its power cap is busy; a card at its temperature limit is in trouble, so cool it first.
Throughput is a matter of patience: warm up, hold the load, measure the window, then take a step.
When a worker dies the others wait for it, and the collective that they share never comes back.
One two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen.
Sunday Monday Tuesday Wednesday Thursday Friday Saturday January February March April August.
0 1 2 3 4 5 6 7 8 9 10 20 50 100 200 500 1000 2048 4096 . , ; : ! ? ( ) [ ] { } + - * / = < >
user assistant system tool
"""

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

CONTEXT_TOKENS = 2048
VOCABULARY = 640
"""Synthetic prompts are made of token ids, of which every real model has more than this."""
LAYERS = 2
HIDDEN = 64
INTERMEDIATE = 2 * HIDDEN
HEADS = 4
KV_HEADS = 2
HEAD_DIMENSION = 32
"""vLLM's attention on a CPU wants a multiple of 32."""


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write one of the model's JSON files."""
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def make_tokenizer(folder: Path) -> Any:
    """Train the tokenizer and write its files."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TRAINING_TEXT.strip().splitlines(), trainer)
    if tokenizer.get_vocab_size() != VOCABULARY:
        raise SystemExit(f"the text gives only {tokenizer.get_vocab_size()} tokens: lengthen it")
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": CONTEXT_TOKENS,
            "bos_token": None,
            "eos_token": END_OF_TURN,
            "pad_token": END_OF_TEXT,
            "additional_special_tokens": [START_OF_TURN, END_OF_TURN],
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
    )
    return tokenizer


def write_configuration(folder: Path, tokenizer: Any) -> None:
    """Write the architecture and the sampling defaults."""
    end_of_text, end_of_turn = (
        tokenizer.token_to_id(token) for token in (END_OF_TEXT, END_OF_TURN)
    )
    write_json(
        folder / "config.json",
        {
            "architectures": ["Qwen3ForCausalLM"],
            "model_type": "qwen3",
            "hidden_size": HIDDEN,
            "intermediate_size": INTERMEDIATE,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "num_key_value_heads": KV_HEADS,
            "head_dim": HEAD_DIMENSION,
            "vocab_size": VOCABULARY,
            "max_position_embeddings": CONTEXT_TOKENS,
            "rms_norm_eps": 1e-6,
            "rope_theta": 10000.0,
            "hidden_act": "silu",
            "attention_bias": False,
            "tie_word_embeddings": False,
            "torch_dtype": "float32",
            "bos_token_id": end_of_text,
            "eos_token_id": end_of_turn,
            "pad_token_id": end_of_text,
        },
    )
    write_json(
        folder / "generation_config.json",
        {
            "bos_token_id": end_of_text,
            "eos_token_id": [end_of_turn, end_of_text],
            "pad_token_id": end_of_text,
            "do_sample": True,
            "temperature": 0.7,
            "top_p": 0.9,
        },
    )


def random_weights() -> dict[str, Any]:
    """The model's tensors by their Qwen3 names; the same ones every time."""
    random = np.random.default_rng(seed=0)

    def matrix(rows: int, columns: int) -> Any:
        return random.normal(0.0, 0.02, (rows, columns)).astype(np.float32)

    def ones(size: int) -> Any:
        return np.ones(size, np.float32)

    queries, keys = HEADS * HEAD_DIMENSION, KV_HEADS * HEAD_DIMENSION
    weights = {
        "model.embed_tokens.weight": matrix(VOCABULARY, HIDDEN),
        "model.norm.weight": ones(HIDDEN),
        "lm_head.weight": matrix(VOCABULARY, HIDDEN),
    }
    for layer in range(LAYERS):
        tensors = {
            "input_layernorm": ones(HIDDEN),
            "post_attention_layernorm": ones(HIDDEN),
            "self_attn.q_proj": matrix(queries, HIDDEN),
            "self_attn.k_proj": matrix(keys, HIDDEN),
            "self_attn.v_proj": matrix(keys, HIDDEN),
            "self_attn.o_proj": matrix(HIDDEN, queries),
            "self_attn.q_norm": ones(HEAD_DIMENSION),
            "self_attn.k_norm": ones(HEAD_DIMENSION),
            "mlp.gate_proj": matrix(INTERMEDIATE, HIDDEN),
            "mlp.up_proj": matrix(INTERMEDIATE, HIDDEN),
            "mlp.down_proj": matrix(HIDDEN, INTERMEDIATE),
        }
        weights |= {f"model.layers.{layer}.{name}.weight": tensors[name] for name in tensors}
    return weights


def main() -> None:
    """Write the model into the folder named on the command line."""
    (argument,) = sys.argv[1:]
    folder = Path(argument)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer(folder)
    write_configuration(folder, tokenizer)
    save_file(random_weights(), str(folder / "model.safetensors"), metadata={"format": "pt"})


if __name__ == "__main__":
    main()
