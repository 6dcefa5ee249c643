"""What the scripts share: prompts, and how a line of results reads. PROMPT and NEW in the environment
say how many tokens prompts and completions have."""
import os
import resource
import statistics
import time

PROMPT, NEW = int(os.environ.get("PROMPT", 64)), int(os.environ.get("NEW", 32))


def prompts(n, turn, length=PROMPT):
    """n prompts of ids, different in each turn, so that no engine finds them in a cache."""
    return [[(7919 * (turn + 1) + 104729 * i + 31 * t) % 100000 + 300 for t in range(length)] for i in range(n)]


def clock():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return time.monotonic(), u.ru_utime + u.ru_stime


def measure(engine, together, run, repeat):
    """run(ids, new) completes each list of ids by new tokens. Prefill is a run for one token, decode
    what a run for NEW more tokens takes beyond it. Prints medians of tokens/s by the wall and per
    second of processor time."""
    rows = []
    run(prompts(1, 99), 2)
    for turn in range(repeat):
        a = clock()
        run(prompts(together, 2 * turn), 1)
        b = clock()
        run(prompts(together, 2 * turn + 1), 1 + NEW)
        c = clock()
        first, all_ = [b[k] - a[k] for k in (0, 1)], [c[k] - b[k] for k in (0, 1)]
        rows.append([together * PROMPT / first[0], together * NEW / max(all_[0] - first[0], 1e-9),
                     together * PROMPT / first[1], together * NEW / max(all_[1] - first[1], 1e-9)])
    m = [statistics.median(column) for column in zip(*rows)]
    print(f"{engine} together={together} prefill={m[0]:.1f} decode={m[1]:.1f} tok/s; "
          f"per processor second prefill={m[2]:.1f} decode={m[3]:.1f}", flush=True)
