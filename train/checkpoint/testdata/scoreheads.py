"""Makes scoreheads.json: what published reward models with weights of scoreheads_test.go compute, by torch.

    pip install torch transformers
    python scoreheads.py > scoreheads.json

Backbones are transformers', in float64; heads are the modules that the models' own code has. Element i of the k-th
tensor by name is sin(0.37·i·(1+k%3) + k), halved; in norms, 1 and 0.3 times it.
"""
import json

import torch
import transformers
from torch import nn

torch.set_default_dtype(torch.float64)
TOKENS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
CONFIG = {"model_type": "qwen2", "vocab_size": 11, "hidden_size": 8, "intermediate_size": 10, "num_hidden_layers": 2,
          "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
          "rope_theta": 10000.0, "tie_word_embeddings": False}


class Scorer(nn.Module):
    def __init__(self, heads):
        super().__init__()
        own = {k: v for k, v in CONFIG.items() if k != "model_type"}
        self.model = transformers.Qwen2Model(transformers.Qwen2Config(**own))
        for name, head in heads.items():
            self.add_module(name, head)


def two_layers(labels):
    return {"score": nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, labels))}


def value_head():
    head = nn.Module()
    head.summary = nn.Linear(8, 1)
    return {"v_head": head}


@torch.no_grad()
def case(arch, heads, read):
    m = Scorer(heads).eval()
    for k, (name, p) in enumerate(sorted(m.named_parameters())):
        v = torch.sin(0.37 * torch.arange(p.numel()) * (1 + k % 3) + k) / 2
        p.copy_((1 + 0.6 * v if "norm" in name else v).to(torch.float32).to(torch.float64).view(p.shape))
    h = m.model(torch.tensor([TOKENS])).last_hidden_state[0]
    shapes = {name: list(p.shape) for name, p in m.named_parameters() if not name.startswith("model.")}
    return {"config": {**CONFIG, "architectures": [arch]}, "heads": shapes, "scores": read(m, h).tolist()}


print(json.dumps({"made_by": f"transformers {transformers.__version__} and torch, in float64", "tokens": TOKENS, "models": [
    case("Qwen2ForRewardModel", two_layers(1), lambda m, h: m.score(h)[:, 0]),
    case("Qwen2ForProcessRewardModel", two_layers(2), lambda m, h: m.score(h).softmax(-1)[:, 1].logit()),
    case("Qwen2ForPrmModel", value_head(), lambda m, h: m.v_head.summary(h)[:, 0]),
    case("Qwen2ForCausalLM", {"lm_head": nn.Linear(8, 11, bias=False)},
         lambda m, h: m.lm_head(h)[:, [7, 4]].softmax(-1)[:, 0].logit()),
]}))
