"""Measures llama.cpp's server (package xllamacpp) with requests that arrive together.

    python llamacpp.py MODEL.gguf THREADS REPEAT TOGETHER...
"""
import sys
import threading

import xllamacpp

from prompts import NEW, PROMPT, measure

path, threads, repeat, batches = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), [int(n) for n in sys.argv[4:]]
most = max(batches)
p = xllamacpp.CommonParams()
p.model.path = path
p.n_parallel = most
p.n_ctx = most * (PROMPT + NEW + 32)
p.n_batch = p.n_ubatch = 512
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = threads
p.warmup = False
p.verbosity = 0
p.cache_ram_mib = 0
server = xllamacpp.Server(p)


def complete(ids, new):
    answers = [None] * len(ids)

    def one(i):
        answers[i] = server.handle_completions({"prompt": ids[i], "n_predict": new, "temperature": 1.0, "top_k": 0,
                                                "top_p": 1.0, "min_p": 0.0, "ignore_eos": True, "cache_prompt": False})

    calls = [threading.Thread(target=one, args=(i,)) for i in range(len(ids))]
    for c in calls:
        c.start()
    for c in calls:
        c.join()
    for a in answers:
        if a.get("usage", {}).get("completion_tokens") != new:
            sys.exit(f"want {new} tokens: {str(a)[:400]}")


for n in batches:
    measure(f"llama.cpp {path.rsplit('/', 1)[-1]} threads={threads}", n, complete, repeat)
