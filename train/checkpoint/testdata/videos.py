# Writes videos.json: features and logits of tiny models that read a video between images, from transformers in float64.
# videos_test.go has the rules of weights and pixels, which are images.py's. Run: python3 videos.py > videos.json
import json

import torch
import transformers

from images import END, GENERATING, IDS, IMAGE, LINEAR, START, features, fill, models, pixels

VIDEO, MERGE = IDS["video_token_id"], 2


def places(model, tokens, types, grids, interval):
    """Positions as transformers before 5.6 has them: text goes on behind the largest."""
    out, at, i = [], 0, 0
    while i < len(tokens):
        n = 1
        if types[i]:
            t, r, c = grids.pop(0)
            out.append(model.get_vision_position_ids(at, torch.tensor([t, r, c]), 1, MERGE, interval if types[i] == 2 else 1))
            n = t * r * c // MERGE**2
        else:
            out.append(torch.full((3, 1), at))
        at, i = int(out[-1].max()) + 1, i + n
    return torch.cat(out, 1)


def main():
    out = {"made_by": f"transformers {transformers.__version__} in float64, see videos.py", "models": []}
    for name, cls, config in models():
        if not name.startswith("qwen") or name.endswith("moe"):
            continue
        parts, rows, columns, fps, interval = 5, 4, 6, 1.75, 1.0
        if name == "qwen2.5-vl":
            config.vision_config.tokens_per_second = 3
            interval = float(3 * torch.tensor(2 / fps, dtype=torch.float64))
        config._attn_implementation = "eager"
        model = cls(config).eval()
        fill(model)
        apart = name.startswith("qwen3")
        n = 3 * 2 * 4 * 4
        video = torch.cat([pixels(rows, columns, n, 10.0 + k) for k in range(parts)])
        image = pixels(4, 4, n, 3.0)
        each = [VIDEO] * (rows * columns // 4)
        if apart:
            shown = sum(([20 + k, START] + each + [END] for k in range(parts)), [])
            grids = [(1, 4, 4)] + [(1, rows, columns)] * parts + [(1, 4, 4)]
        else:
            shown = [START] + each * parts + [END]
            grids = [(1, 4, 4), (parts, rows, columns), (1, 4, 4)]
        still = [START] + [IMAGE] * 4 + [END]
        tokens = [3, 1] + still + [4] + shown + [9, 12] + still + [2, 6, 11, 20, 3]
        types = [{IMAGE: 1, VIDEO: 2}.get(t, 0) for t in tokens]
        x = dict(input_ids=torch.tensor([tokens]), pixel_values=torch.cat([image, image]),
                 image_grid_thw=torch.tensor([(1, 4, 4)] * 2), pixel_values_videos=video,
                 video_grid_thw=torch.tensor([(parts, rows, columns)]),
                 attention_mask=torch.ones(1, len(tokens), dtype=torch.int64),
                 mm_token_type_ids=torch.tensor([types]).int())
        if name == "qwen2.5-vl":
            x["second_per_grid_ts"] = torch.tensor([2 / fps])
        position = places(model.model, tokens, types, list(grids), interval)
        own, _ = model.model.get_rope_index(x["input_ids"], x["mm_token_type_ids"], image_grid_thw=x["image_grid_thw"],
                                            video_grid_thw=x["video_grid_thw"],
                                            second_per_grid_ts=x.get("second_per_grid_ts"))
        behind = tokens.index(9)  # text behind the video, which transformers now places among its positions
        assert torch.equal(own[:, 0, :behind - 1], position[:, :behind - 1])
        assert torch.equal(own[:, 0], position) == apart
        with torch.no_grad():
            got = model.model.visual(video, grid_thw=x["video_grid_thw"])
            flat = torch.cat([f.reshape(-1) for f in features(got)]).numpy()
            logits = model(**x, position_ids=position[:, None]).logits[0]
        at = [8, behind - 2, behind, len(tokens) - 1]
        c = json.loads(config.to_json_string(use_diff=False))
        keep = {k: c[k] for k in ("model_type", "tie_word_embeddings", "text_config", "vision_config", *IDS) if k in c}
        keep["architectures"] = [cls.__name__]
        known = GENERATING | LINEAR | {"tokens_per_second"}
        for part in ("text_config", "vision_config"):
            keep[part] = {k: v for k, v in keep[part].items() if k in known}
        out["models"].append({"name": name, "config": keep, "parts": parts, "rows": rows, "columns": columns, "fps": fps,
                              "places": position.T.tolist(), "every11th": flat[::11].tolist(), "tokens": tokens,
                              "after": at, "logits": [logits[r].tolist() for r in at]})
    print(json.dumps(out))


main()
