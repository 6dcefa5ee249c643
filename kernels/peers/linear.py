"""Measures linear attention in PyTorch as Transformers has it: prompts by chunks, new tokens row by row.

    python linear.py write FOLDER [LAYERS]    Qwen3.5-0.8B's shape with random weights, 32,000 tokens
    python linear.py sample FOLDER f32|bf16 THREADS REPEAT TOGETHER...
    python linear.py train FOLDER f32|bf16 THREADS REPEAT BATCH LENGTH

It needs torch and transformers; linear.sh installs them and runs exp in turns.
"""
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig
from transformers.utils import logging

from prompts import measure

logging.set_verbosity_error()
logging.disable_progress_bar()


def write(folder, layers=4):
    config = Qwen3_5TextConfig(
        vocab_size=32000, hidden_size=1024, intermediate_size=3584, num_hidden_layers=layers, num_attention_heads=8,
        num_key_value_heads=2, head_dim=256, linear_num_key_heads=16, linear_num_value_heads=16, tie_word_embeddings=True,
        max_position_embeddings=4096, bos_token_id=None, eos_token_id=0)
    torch.manual_seed(0)
    Qwen3_5ForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)


def load(folder, kind, threads):
    torch.set_num_threads(threads)
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[kind]
    return Qwen3_5ForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True)


def sample(folder, kind, threads, repeat, batches):
    model = load(folder, kind, threads).eval()

    @torch.inference_mode()
    def complete(ids, new):
        x, cache = torch.tensor(ids) % model.config.vocab_size, None
        for _ in range(new):
            out = model(input_ids=x, cache=cache, use_cache=True, logits_to_keep=1)
            x, cache = torch.multinomial(out.logits[:, -1].float().softmax(-1), 1), out.cache

    for n in batches:
        measure(f"Transformers {kind} threads={threads}", n, complete, repeat)


def train(folder, kind, threads, repeat, batch, length):
    model = load(folder, kind, threads).train()
    update = torch.optim.AdamW(model.parameters(), lr=1e-5)
    ids = torch.randint(model.config.vocab_size, (batch, length + 1))
    seconds = []
    for _ in range(repeat + 1):
        start = time.monotonic()
        logits = model(input_ids=ids[:, :-1], use_cache=False).logits
        F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        update.step()
        update.zero_grad()
        seconds.append(time.monotonic() - start)
    wall = statistics.median(seconds[1:])  # the first warms up
    print(f"Transformers {kind} threads={threads} train {batch} x {length}: {batch * length / wall:.1f} tok/s", flush=True)


if __name__ == "__main__":
    command, to = sys.argv[1:3]
    if command == "write":
        write(to, *map(int, sys.argv[3:]))
    elif command == "sample":
        sample(to, sys.argv[3], *map(int, sys.argv[4:6]), list(map(int, sys.argv[6:])))
    elif command == "train":
        train(to, sys.argv[3], *map(int, sys.argv[4:]))
    else:
        sys.exit(f"{command}: no such command")
