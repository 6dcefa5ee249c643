# Writes penalties.json: logits before and after the logits processors of transformers, in vLLM's order, with the
# presence and frequency penalties of OpenAI's formula, which transformers lacks. Needs torch and transformers.
import json
import torch
import transformers
from transformers import generation as g

torch.manual_seed(7)
V, END = 24, 0
cases = []
for repetition, presence, frequency, bias, least in [
    (1.05, 0, 0, {}, 0), (1.1, 0, 0, {}, 0), (0.8, 0, 0, {}, 0), (1, 0.5, 0, {}, 0), (1, 0, 0.7, {}, 0),
    (1, -0.5, 0.3, {}, 0), (1.3, 0.4, 0.2, {}, 0), (1, 0, 0, {3: 2.5, 9: -100.0}, 0), (1, 0, 0, {}, 30),
    (1.2, 0.1, 0.6, {0: 4.0, 5: -1.5, 11: 0.25}, 30),
]:
    for drawn in (0, 1, 9):
        prompt = torch.randint(1, V // 2, (1, 6))
        completion = torch.randint(1, V, (1, drawn))
        ids = torch.cat([prompt, completion], 1)
        logits = torch.randn(1, V) * 4
        list_ = g.LogitsProcessorList()
        if bias:
            list_.append(g.SequenceBiasLogitsProcessor([[[token], add] for token, add in bias.items()]))
        if least:
            list_.append(g.MinNewTokensLengthLogitsProcessor(prompt.shape[1], least, END, device="cpu"))
        if repetition != 1:
            list_.append(g.RepetitionPenaltyLogitsProcessor(repetition))
        want = list_(ids, logits.clone())
        n = torch.bincount(completion[0], minlength=V)
        want = want - frequency * n - presence * (n > 0)
        cases.append({"repetition": repetition, "presence": presence, "frequency": frequency,
                      "bias": [{"Token": t, "Add": a} for t, a in bias.items()], "least": least,
                      "prompt": prompt[0].tolist(), "drawn": completion[0].tolist(), "logits": logits[0].tolist(),
                      "want": [None if x == float("-inf") else x for x in want[0].tolist()]})
print(json.dumps({"transformers": transformers.__version__, "cases": cases}))
