"""An example of an agent that says what turns earn: the policy walks on a grid of 4 x 4 cells to a corner.

    exp run configs/grid_cpu.yaml

It reads a JSON line for each episode and writes one when the episode is over, as exp config explain
rollout.tools.conversations says. "02:" asks for a move from column 0, row 2: n, e, s or w. The turn that
reaches the corner earns 1, others nothing. Needs nothing but Python 3.
"""

import json
import sys
import urllib.request

MOVES = {"n": (0, -1), "e": (1, 0), "s": (0, 1), "w": (-1, 0)}
CORNER = [3, 3]
TURNS = 10


def ask(task, text):
    """Return how the policy continues a text."""
    body = json.dumps({"model": "policy", "prompt": text}).encode()
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + task["api_key"]}
    request = urllib.request.Request(task["base_url"] + "/completions", body, headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["text"]


def play(task):
    """Return what each turn earned, and where it was taken."""
    at, turns = [int(digit) for digit in task["prompt"].rstrip(":")], []
    while at != CORNER and len(turns) < TURNS:
        where = "%d%d:" % tuple(at)
        dx, dy = MOVES.get(ask(task, where), (0, 0))  # anything else stays
        at = [min(3, max(0, at[0] + dx)), min(3, max(0, at[1] + dy))]
        turns.append({"reward": int(at == CORNER), "state": where})
    return turns


for line in sys.stdin:  # an episode
    task = json.loads(line)
    try:
        end = {"turns": play(task)}  # the score is the sum of their rewards
    except OSError as e:
        end = {"error": repr(e)}
    print(json.dumps({"id": task["id"], **end}), flush=True)
