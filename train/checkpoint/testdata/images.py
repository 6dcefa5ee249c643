# Writes images.json: features and logits of tiny models of text and images, from transformers in float64.
# images_test.go has the rules of weights and pixels. Run: python3 images.py > images.json
import json

import numpy as np
import torch
import transformers
from transformers import (Gemma3Config, Gemma3ForConditionalGeneration, Glm4vConfig, Glm4vForConditionalGeneration, Glm4vMoeConfig,
                          Glm4vMoeForConditionalGeneration, Idefics3Config, Idefics3ForConditionalGeneration,
                          InternVLConfig, InternVLForConditionalGeneration, Mistral3Config,
                          Mistral3ForConditionalGeneration,
                          Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration, Qwen2VLConfig,
                          Qwen2VLForConditionalGeneration, Qwen3_5Config, Qwen3_5ForConditionalGeneration,
                          Qwen3_5MoeConfig, Qwen3_5MoeForConditionalGeneration, Qwen3VLConfig,
                          Qwen3VLForConditionalGeneration, Qwen3VLMoeConfig, Qwen3VLMoeForConditionalGeneration,
                          SmolVLMConfig, SmolVLMForConditionalGeneration)

torch.set_default_dtype(torch.float64)
torch.float32 = torch.float = torch.float64  # transformers widens some values to float32: here nothing narrows
torch.Tensor.float = torch.Tensor.double
IMAGE, START, END, VOCAB = 7, 5, 6, 37


def waves(state):
    """Sets element i of the k-th tensor by name to sin(0.37·i·(1+k%3) + k)/2, in norms 1 and 0.6 times it."""
    out = {}
    for k, name in enumerate(sorted(state)):
        i = np.arange(state[name].numel(), dtype=np.float64)
        v = np.sin(0.37 * i * float(1 + k % 3) + float(k)) / 2
        if "norm" in name or "ln_q" in name:
            v = 1 + 0.6 * v
        out[name] = torch.tensor(v.astype(np.float32).astype(np.float64)).reshape(state[name].shape)
    return out


def experts(name, t):
    """Splits a tensor of all experts of a layer."""
    prefix, of, part = name.partition(".mlp.experts.")
    if not of:
        return {name: t}
    parts = ["gate_proj", "up_proj"] if part == "gate_up_proj" else ["down_proj"]
    return {f"{prefix}{of}{e}.{p}.weight": x for e in range(len(t)) for p, x in zip(parts, t[e].chunk(len(parts)))}


def together(state):
    """Undoes experts."""
    out, parts = {}, {}
    for name, t in state.items():
        prefix, of, rest = name.partition(".mlp.experts.")
        if not of:
            out[name] = t
            continue
        e, part, _ = rest.split(".")
        key = prefix + of + ("down_proj" if part == "down_proj" else "gate_up_proj")
        parts.setdefault(key, {})[int(e), part] = t
    for key, of in parts.items():
        count = 1 + max(e for e, _ in of)
        names = ["down_proj"] if key.endswith("down_proj") else ["gate_proj", "up_proj"]
        out[key] = torch.stack([torch.cat([of[e, p] for p in names]) for e in range(count)])
    return out


def of_tower(name):
    """The beginning of the name of a tower's tensor that package vision leaves out."""
    for part in ("model.visual.", "model.vision_tower.", "model.multi_modal_projector.", "model.vision_model.",
                 "model.connector."):
        if name.startswith(part):
            return part if part == "model.visual." else "model."
    return ""


def fill(model):
    state = model.state_dict()
    text, tower, new = {}, {}, {}
    inner = "model.text_model." if "model.text_model.norm.weight" in state else "model.language_model."
    for name, t in state.items():
        if of_tower(name):
            tower[name[len(of_tower(name)):]] = t
        elif name != "lm_head.weight" or not model.config.tie_word_embeddings:
            text.update(experts(name.replace(inner, "model."), t))
    back = {name[len(of_tower(name)):]: name for name in state if of_tower(name)}
    for name, t in waves(tower).items():
        new[back[name]] = t
    for name, t in together(waves(text)).items():
        new[name if name == "lm_head.weight" else name.replace("model.", inner, 1)] = t
    if model.config.tie_word_embeddings:
        new["lm_head.weight"] = new[inner + "embed_tokens.weight"]
    model.load_state_dict(new, strict=True)


def pixels(rows, columns, n, first):
    i = np.arange(rows * columns * n, dtype=np.float64)
    return torch.tensor(np.sin(0.003 * i * i + first).astype(np.float32).astype(np.float64)).reshape(rows * columns, n)


TEXT = dict(vocab_size=VOCAB, hidden_size=24, intermediate_size=20, num_hidden_layers=3, num_attention_heads=2,
            num_key_value_heads=1, rms_norm_eps=1e-6, max_position_embeddings=256, bos_token_id=None, eos_token_id=2,
            pad_token_id=None)
GLM_IDS = dict(image_token_id=IMAGE, video_token_id=8, image_start_token_id=START, image_end_token_id=END)
IDS = dict(image_token_id=IMAGE, video_token_id=8, vision_start_token_id=START, vision_end_token_id=END)


def models():
    rope = dict(rope_theta=1e4, rope_type="default", mrope_section=[3, 2, 1])
    yield "qwen2-vl", Qwen2VLForConditionalGeneration, Qwen2VLConfig(
        text_config=dict(TEXT, rope_parameters=rope), tie_word_embeddings=True, **IDS,
        vision_config=dict(depth=3, embed_dim=32, hidden_size=24, mlp_ratio=2, num_heads=2, patch_size=4,
                           spatial_merge_size=2, temporal_patch_size=2, hidden_act="quick_gelu"))
    yield "qwen2.5-vl", Qwen2_5_VLForConditionalGeneration, Qwen2_5_VLConfig(
        text_config=dict(TEXT, rope_parameters=rope), tie_word_embeddings=False, **IDS,
        vision_config=dict(depth=4, hidden_size=40, intermediate_size=27, num_heads=2, patch_size=4,
                           spatial_merge_size=2, temporal_patch_size=2, window_size=16, out_hidden_size=24,
                           fullatt_block_indexes=[1, 3], hidden_act="silu"))
    rope = dict(rope, mrope_interleaved=True, mrope_section=[4, 2, 2])
    yield "qwen3-vl", Qwen3VLForConditionalGeneration, Qwen3VLConfig(
        text_config=dict(TEXT, head_dim=16, rope_parameters=rope), tie_word_embeddings=False, **IDS,
        vision_config=dict(depth=4, hidden_size=48, intermediate_size=30, num_heads=2, patch_size=4,
                           spatial_merge_size=2, temporal_patch_size=2, out_hidden_size=24,
                           num_position_embeddings=36, deepstack_visual_indexes=[0, 2],
                           hidden_act="gelu_pytorch_tanh"))
    vision = dict(depth=2, hidden_size=24, intermediate_size=20, num_heads=2, patch_size=4, spatial_merge_size=2,
                  temporal_patch_size=2, out_hidden_size=24, num_position_embeddings=16,
                  deepstack_visual_indexes=[1], hidden_act="gelu_pytorch_tanh")
    yield "qwen3-vl-moe", Qwen3VLMoeForConditionalGeneration, Qwen3VLMoeConfig(
        text_config=dict(TEXT, head_dim=16, rope_parameters=rope, num_experts=4, num_experts_per_tok=2,
                         moe_intermediate_size=10, decoder_sparse_step=1, mlp_only_layers=[1]),
        tie_word_embeddings=False, **IDS, vision_config=vision)
    del vision["deepstack_visual_indexes"]
    rope = dict(rope, partial_rotary_factor=0.5, mrope_section=[3, 2, 1])
    linear = dict(TEXT, head_dim=24, rope_parameters=rope, linear_num_key_heads=2, linear_num_value_heads=4,
                  linear_key_head_dim=12, linear_value_head_dim=10, linear_conv_kernel_dim=4,
                  layer_types=["linear_attention", "full_attention", "linear_attention"])
    yield "qwen3.5", Qwen3_5ForConditionalGeneration, Qwen3_5Config(
        text_config=linear, tie_word_embeddings=True, **IDS, vision_config=vision)
    yield "qwen3.5-moe", Qwen3_5MoeForConditionalGeneration, Qwen3_5MoeConfig(
        text_config=dict(linear, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=10,
                         shared_expert_intermediate_size=6), tie_word_embeddings=False, **IDS, vision_config=vision)


    rope = dict(rope_theta=1e4, rope_type="default", partial_rotary_factor=0.5, mrope_section=[1, 1, 1])
    vision = dict(depth=2, hidden_size=24, intermediate_size=14, num_heads=2, patch_size=4, spatial_merge_size=2,
                  temporal_patch_size=2, out_hidden_size=24, image_size=20, hidden_act="silu", attention_bias=False,
                  rms_norm_eps=1e-5)
    yield "glm4v", Glm4vForConditionalGeneration, Glm4vConfig(
        text_config=dict(TEXT, rope_parameters=rope), tie_word_embeddings=False, **GLM_IDS, vision_config=vision)
    yield "glm4v-moe", Glm4vMoeForConditionalGeneration, Glm4vMoeConfig(
        text_config=dict(TEXT, head_dim=12, rope_parameters=rope, n_routed_experts=4, num_experts_per_tok=2,
                         n_shared_experts=1, moe_intermediate_size=10, first_k_dense_replace=1, attention_bias=True,
                         use_qk_norm=False, norm_topk_prob=True, n_group=1, topk_group=1, routed_scaling_factor=1.5),
        tie_word_embeddings=False, **GLM_IDS, vision_config=dict(vision, attention_bias=True))
    rope = dict(rope_theta=1e4, rope_type="default")
    vision = dict(num_hidden_layers=2, hidden_size=24, intermediate_size=20, num_attention_heads=2, patch_size=[4, 4],
                  image_size=[16, 16], num_channels=3, hidden_act="gelu", attention_bias=True, use_qk_norm=False,
                  norm_type="layer_norm", layer_norm_eps=1e-6, use_mean_pooling=True, layer_scale_init_value=0.1)
    yield "internvl", InternVLForConditionalGeneration, InternVLConfig(
        text_config=dict(TEXT, model_type="qwen2", rope_parameters=rope, tie_word_embeddings=True),
        tie_word_embeddings=True, image_token_id=IMAGE, image_seq_length=4, vision_config=vision)
    yield "internvl-6b", InternVLForConditionalGeneration, InternVLConfig(
        text_config=dict(TEXT, model_type="qwen3", head_dim=16, rope_parameters=rope, tie_word_embeddings=False),
        tie_word_embeddings=False, image_token_id=IMAGE, image_seq_length=4,
        vision_config=dict(vision, attention_bias=False, use_qk_norm=True, norm_type="rms_norm",
                           use_mean_pooling=False, layer_norm_eps=1e-4))
    vision = dict(num_hidden_layers=2, hidden_size=24, intermediate_size=20, num_attention_heads=2, patch_size=4,
                  image_size=16, num_channels=3, hidden_act="gelu_pytorch_tanh", layer_norm_eps=1e-6)
    yield "idefics3", Idefics3ForConditionalGeneration, Idefics3Config(
        text_config=dict(TEXT, model_type="llama", rope_parameters=rope), tie_word_embeddings=True,
        image_token_id=IMAGE, scale_factor=2, vision_config=vision)
    yield "smolvlm", SmolVLMForConditionalGeneration, SmolVLMConfig(
        text_config=dict(TEXT, model_type="llama", rope_parameters=rope), tie_word_embeddings=False,
        image_token_id=IMAGE, scale_factor=4, vision_config=dict(vision, image_size=18, layer_norm_eps=1e-4))
    yield "mistral3", Mistral3ForConditionalGeneration, Mistral3Config(
        text_config=dict(TEXT, model_type="mistral", head_dim=16, rms_norm_eps=1e-4, sliding_window=None, rope_parameters=rope),
        tie_word_embeddings=False, image_token_id=IMAGE, spatial_merge_size=2,
        vision_config=dict(model_type="pixtral", num_hidden_layers=2, hidden_size=32, intermediate_size=20,
                           num_attention_heads=2, patch_size=4, image_size=64, num_channels=3, hidden_act="silu",
                           rope_parameters=dict(rope_type="axial", rope_theta=1e4)))
    rope = dict(full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1e6),
                sliding_attention=dict(rope_type="default", rope_theta=1e4))
    yield "gemma3", Gemma3ForConditionalGeneration, Gemma3Config(
        text_config=dict(TEXT, model_type="gemma3_text", head_dim=16, query_pre_attn_scalar=16, sliding_window=6,
                         layer_types=["sliding_attention", "full_attention", "sliding_attention"], rope_parameters=rope),
        image_token_index=IMAGE, boi_token_index=START, eoi_token_index=END, mm_tokens_per_image=4,
        vision_config=dict(num_hidden_layers=2, hidden_size=24, intermediate_size=20, num_attention_heads=2, patch_size=4,
                           image_size=16, num_channels=3, hidden_act="gelu_pytorch_tanh", layer_norm_eps=1e-6,
                           vision_use_head=False))


def sheet(patches, rows, columns, p=4):
    """Pixels [1,3,rows*p,columns*p] of patches, 2 x 2 after each other."""
    x = patches.reshape(rows // 2, columns // 2, 2, 2, 3, p, p).permute(4, 0, 2, 5, 1, 3, 6)
    return x.reshape(1, 3, rows * p, columns * p)


def tiles(patches, m, side=4, p=4):
    """Pixels [tiles,3,side*p,side*p] of patches in tiles of side x side of them, m x m after each other."""
    n = len(patches) // side ** 2
    x = patches.reshape(n, side // m, side // m, m, m, 3, p, p).permute(0, 5, 1, 3, 6, 2, 4, 7)
    return x.reshape(n, 3, side * p, side * p)


def main():
    out = {"made_by": f"transformers {transformers.__version__} in float64, see images.py", "models": []}
    for name, cls, config in models():
        config._attn_implementation = "eager"
        model = cls(config).eval()
        model.set_experts_implementation("eager")
        fill(model)
        split, square = name in ("idefics3", "smolvlm"), name == "gemma3"
        tiled = split or square or name.startswith("internvl")
        side = 4 if name == "smolvlm" else 2
        fit = name == "mistral3"
        merge, n = side * side, 3 * 4 * 4 * (1 if tiled or fit else 2)
        cut = lambda patches: tiles(patches, side)[None] if split else tiles(patches, side)
        grids = [(4, 4), (4 if square else 12, 4)] if tiled else [(4, 6), (10, 14)]
        patches = [pixels(r, c, n, float(k)) for k, (r, c) in enumerate(grids)]
        shown = [[IMAGE] * (r * c // merge) for r, c in grids]
        if split:  # tokens of text between tiles
            shown[1] = ([IMAGE] * (16 // merge) + [12]) * 2 + [IMAGE] * (16 // merge)
        tokens = [3, 1, START] + shown[0] + [END, 4, 1, 9, START] + shown[1] + [END, 2, 6, 11, 20, 3]
        x = dict(input_ids=torch.tensor([tokens]), pixel_values=torch.cat(patches),
                 image_grid_thw=torch.tensor([(1, r, c) for r, c in grids]),
                 attention_mask=torch.ones(1, len(tokens), dtype=torch.int64))
        x["mm_token_type_ids"] = (x["input_ids"] == IMAGE).int()
        if tiled:
            x = dict(input_ids=x["input_ids"], attention_mask=x["attention_mask"], pixel_values=cut(x["pixel_values"]))
        if square:
            x["token_type_ids"] = (x["input_ids"] == IMAGE).long()
        if fit:
            most = [4 * max(g[i] for g in grids) for i in (0, 1)]
            sheets = [sheet(p, *g) for p, g in zip(patches, grids)]
            sheets = [torch.nn.functional.pad(s, (0, most[1] - s.shape[3], 0, most[0] - s.shape[2])) for s in sheets]
            x = dict(input_ids=x["input_ids"], attention_mask=x["attention_mask"], pixel_values=torch.cat(sheets),
                     image_sizes=torch.tensor([(4 * r, 4 * c) for r, c in grids]))
        images = []
        with torch.no_grad():
            for p, (r, c) in zip(patches, grids):
                if fit:
                    got = model.model.get_image_features(sheet(p, r, c), torch.tensor([(4 * r, 4 * c)]), return_dict=True)
                else:
                    got = model.model.get_image_features(cut(p), return_dict=True) if tiled else model.model.visual(p, grid_thw=torch.tensor([(1, r, c)]))
                feats = features(got)
                flat = torch.cat([f.reshape(-1) for f in feats]).numpy()
                images.append({"rows": r, "columns": c, "features": len(flat), "every7th": flat[::7].tolist()})
            logits = model(**x).logits[0]
        rows = [1, 5, max(6, len(tokens) - 20), len(tokens) - 1]
        c = json.loads(config.to_json_string(use_diff=False))
        keep = {k: c[k] for k in ("architectures", "model_type", "tie_word_embeddings", "text_config", "vision_config",
                                  *IDS, *GLM_IDS, *PROJECTOR) if k in c}
        keep["architectures"] = [cls.__name__]
        for part in ("text_config", "vision_config"):
            known = GENERATING | LINEAR if "linear_conv_kernel_dim" in keep[part] else GENERATING
            if "glm4v" in name or tiled or fit:
                known = GENERATING | OTHERS
            keep[part] = {k: v for k, v in keep[part].items() if k in known}
        out["models"].append({"name": name, "config": keep, "images": images, "tokens": tokens, "rows": rows,
                              "logits": [logits[r].tolist() for r in rows]})
    print(json.dumps(out))


# Settings that describe a model.
GENERATING = set(TEXT) | {"head_dim", "rope_parameters", "hidden_act", "model_type", "depth", "embed_dim", "mlp_ratio",
                          "num_heads", "in_channels", "patch_size", "spatial_merge_size", "temporal_patch_size",
                          "window_size", "out_hidden_size", "fullatt_block_indexes", "num_position_embeddings",
                          "deepstack_visual_indexes", "initializer_range", "dtype", "num_experts",
                          "num_experts_per_tok", "moe_intermediate_size", "decoder_sparse_step", "mlp_only_layers",
                          "norm_topk_prob", "num_local_experts"}
OTHERS = {"image_size", "attention_bias", "n_routed_experts", "n_shared_experts", "first_k_dense_replace", "n_group",
          "topk_group", "routed_scaling_factor", "num_channels", "use_qk_norm", "norm_type", "layer_norm_eps",
          "use_mean_pooling", "tie_word_embeddings", "query_pre_attn_scalar", "sliding_window", "layer_types",
          "hidden_activation", "vision_use_head"}
PROJECTOR = ["mm_tokens_per_image", "scale_factor", "image_token_index", "spatial_merge_size", "multimodal_projector_bias", "downsample_ratio", "image_seq_length", "projector_hidden_act", "vision_feature_layer",
             "vision_feature_select_strategy"]
LINEAR = {"layer_types", "shared_expert_intermediate_size", "linear_num_key_heads", "linear_num_value_heads",
          "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim"}


def features(got):
    """The features of an image's tokens, then those for layers of the language model."""
    if isinstance(getattr(got, "pooler_output", None), (list, tuple)):
        return got.pooler_output
    if hasattr(got, "pooler_output"):
        return [got.pooler_output, *(getattr(got, "deepstack_features", None) or [])]
    if isinstance(got, tuple):
        return [got[0], *got[1]]
    return [got]


if __name__ == "__main__":
    main()
