"""Measures OpenVINO GenAI's continuous batching on a GGUF file of f16 weights.

    python genai.py MODEL.gguf f32|bf16 THREADS REPEAT TOGETHER...
"""
import sys

import numpy as np
import openvino as ov
import openvino_genai as genai

from prompts import measure

path, kind, threads, repeat, batches = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), [int(n) for n in sys.argv[5:]]
scheduler = genai.SchedulerConfig()
scheduler.max_num_seqs = max(batches)
scheduler.max_num_batched_tokens = 4096
scheduler.cache_size = 1
scheduler.enable_prefix_caching = False
pipe = genai.ContinuousBatchingPipeline(path, scheduler, "CPU",
                                        {"INFERENCE_PRECISION_HINT": kind, "INFERENCE_NUM_THREADS": threads})


def complete(ids, new):
    config = genai.GenerationConfig(max_new_tokens=new, min_new_tokens=new, do_sample=True, ignore_eos=True)
    inputs = [ov.Tensor(np.array([x], dtype=np.int64)) for x in ids]
    for r in pipe.generate(inputs, [config] * len(ids)):
        if len(r.m_generation_ids[0]) != new:
            sys.exit(f"want {new} tokens, got {len(r.m_generation_ids[0])}")


for n in batches:
    measure(f"OpenVINO {kind} threads={threads}", n, complete, repeat)
