"""Measures exp on a folder in Hugging Face's layout, as the other scripts measure their engines.

    python engine.py EXP FOLDER f32|bf16 THREADS REPEAT TOGETHER...
"""
import json
import subprocess
import sys

from prompts import NEW, PROMPT

exp, folder, kind, threads, repeat, batches = *sys.argv[1:6], sys.argv[6:]
for n in batches:
    text = subprocess.run([exp, "bench", folder, "--dtype", kind, "--threads", threads, "--repeat", repeat, "--sequences", n,
                           "--prompt", str(PROMPT), "--new", str(NEW + 1), "--json"],
                          check=True, capture_output=True, text=True).stdout

    def find(x, key):
        """The first value of a key, anywhere in x."""
        inner = x.values() if isinstance(x, dict) else x if isinstance(x, list) else ()
        if isinstance(x, dict) and key in x:
            return x[key]
        return next((v for y in inner if (v := find(y, key)) is not None), None)

    report = json.loads(text)
    rates = [find(report, part)["tokens_per_s"]["median"] for part in ("prefill", "decode")]
    print(f"exp {kind} threads={threads} together={n} prefill={rates[0]:.1f} decode={rates[1]:.1f} tok/s", flush=True)
