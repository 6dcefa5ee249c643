"""Makes videos.json: what transformers' video processors make of small videos, and Pillow of GIF animations.

    pip install torch torchvision transformers pillow numpy
    python videos.py [cases] > videos.json

Frame k of a video is pattern(width, height) of golden.py, moved left by 5·k pixels; transformers 5.24 made the file.

cases:  whole is Qwen3-VL's processor (else Qwen2-VL's); settings are its keys; total frames at rate a second, or rate 0
        where all are read, fps a second; then the frames read, the grid, seconds (Qwen3VLProcessor's times), rate
        (sampled_fps) and the SHA-256 of pixel_values_videos (float32, little-endian).
gifs:   a file, each image's delay in hundredths of a second and SHA-256 of its RGB pixels.
times:  Qwen2.5-VL's positions in time: tokens_per_second, frames of a part, sampled_fps, the positions.
refused: videos that the processors refuse.
"""
import hashlib
import io
import json
import random
import struct
import sys

import numpy as np
import torch
from PIL import Image, ImageSequence
from transformers import Qwen2VLVideoProcessor, Qwen3VLVideoProcessor
from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor
from transformers.video_utils import VideoMetadata

random.seed(11)
rng = np.random.default_rng(11)


def sha(x):
    return hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()


def pattern(w, h):
    y, x, c = np.meshgrid(np.arange(h), np.arange(w), np.arange(3), indexing="ij")
    noise = (((x * x * 3 + y * y * 5 + x * y * 7 + c * 85) >> 3) ^ (x * 37 + y * 91 + c * 53)) & 255
    smooth = (x * 255 // w + y * 255 // h * (c + 1) // 2 + c * 40) & 255
    return np.where((x // 16 + y // 16) % 2 == 0, noise, smooth).astype(np.uint8)


def settings(whole):
    s = {"patch_size": random.choice([14, 16, 8]), "merge_size": random.choice([1, 2, 2])}
    f = (s["patch_size"] * s["merge_size"]) ** 2
    low = f * random.choice([1, 2, 4])
    high = low * random.choice([2, 3, 8, 30])
    if whole:
        low, high = low * 2, high * random.choice([2, 8])
    s["size"] = {"shortest_edge": low, "longest_edge": high}
    s["min_frames"], s["max_frames"] = random.choice([(4, 768), (4, 8), (2, 6), (1, 11)])
    if random.random() < 0.4:
        s["cap_pixels_per_frame"] = True
        s["max_video_tokens"] = random.choice([2, 9, 40])
    if random.random() < 0.3:
        s["temporal_patch_size"] = random.choice([1, 3, 4])
    return s


def case():
    whole = random.random() < 0.5
    s = settings(whole)
    w, h, total = random.randint(5, 90), random.randint(5, 90), random.randint(2, 24)
    rate, fps = random.choice([0, 1, 2, 5, 12.5, 24, 30]), random.choice([0.5, 1, 2, 3, 7.5])
    image = pattern(w, h)
    video = np.stack([np.roll(image, -5 * k, axis=1) for k in range(total)])
    p = (Qwen3VLVideoProcessor if whole else Qwen2VLVideoProcessor)(**s)
    meta = VideoMetadata(total_num_frames=total, fps=rate or fps, frames_indices=list(range(total)))
    out = p(video, video_metadata=[meta], do_sample_frames=rate > 0, fps=fps, return_metadata=True, return_tensors="pt")
    meta = out["video_metadata"][0]
    indices = [int(i) for i in meta.frames_indices]
    if not rate and total > s["max_frames"]:
        return None
    seconds = Qwen3VLProcessor._calculate_timestamps(None, list(indices), meta.fps, p.temporal_patch_size)
    x = out["pixel_values_videos"].float().numpy()
    return {"whole": whole, "settings": s, "width": w, "height": h, "total": total, "rate": rate, "fps": fps,
            "frames": indices, "grid": out["video_grid_thw"][0].tolist(), "seconds": seconds,
            "sampled": meta.sampled_fps, "sha256": sha(x)}


def times():
    per, frames, fps = random.choice([2, 4, 25]), random.choice([1, 2, 3]), random.choice([2, 1.75, 0.3, 29.97, 7])
    n = random.randint(1, 12)
    interval = per * torch.tensor([frames / fps])[0]  # as Qwen2_5_VLModel.get_rope_index
    return {"per": per, "frames": frames, "fps": fps, "places": (torch.arange(n) * interval).long().tolist()}


def gif(n):
    w, h = random.randint(1, 20), random.randint(1, 20)
    out = bytearray(b"GIF89a" + struct.pack("<HHBBB", w, h, 0xf0 | 2, random.randint(0, 7), 0))
    out += rng.integers(0, 256, 24, dtype=np.uint8).tobytes()
    for _ in range(n):
        left, top = random.randint(0, w - 1), random.randint(0, h - 1)
        width, height = random.randint(1, w - left), random.randint(1, h - top)
        if random.random() < 0.9:
            out += struct.pack("<BBBBHBB", 0x21, 0xf9, 4, random.choice([0, 1, 2, 3]) << 2 | random.randint(0, 1),
                               random.choice([0, 4, 10, 30]), random.randint(0, 7), 0)
        local = random.random() < 0.4
        out += struct.pack("<BHHHHB", 0x2c, left, top, width, height, 0x82 if local else 0)
        if local:
            out += rng.integers(0, 256, 24, dtype=np.uint8).tobytes()
        codes, data, bits, held = [], bytearray(), 0, 0
        for i, v in enumerate(rng.integers(0, 8, width * height)):
            if i % 6 == 0:
                codes.append(8)  # clear: all codes have 4 bits
            codes.append(int(v))
        for c in codes + [9]:
            held |= c << bits
            bits += 4
            while bits >= 8:
                data.append(held & 255)
                held, bits = held >> 8, bits - 8
        if bits:
            data.append(held)
        out += b"\3"
        for i in range(0, len(data), 255):
            out += bytes([len(data[i:i + 255])]) + data[i:i + 255]
        out += b"\0"
    return bytes(out + b";")


def gifs(n):
    import base64
    data = gif(n)
    frames = ImageSequence.Iterator(Image.open(io.BytesIO(data)))
    shas = [sha(np.asarray(f.convert("RGB"))) for f in frames]
    return {"data": base64.b64encode(data).decode(), "sha256": shas}


def refused():
    out = []
    for whole, w, h, total in [(True, 40, 40, 1), (False, 40, 40, 1), (True, 6000, 2, 4), (False, 6000, 2, 4)]:
        p = (Qwen3VLVideoProcessor if whole else Qwen2VLVideoProcessor)()
        try:
            p(np.zeros((total, h, w, 3), np.uint8), video_metadata=[VideoMetadata(total_num_frames=total, fps=2)],
              do_sample_frames=True, fps=2, return_tensors="pt")
        except Exception:
            out.append({"whole": whole, "width": w, "height": h, "total": total})
    return out


n = int(sys.argv[1]) if len(sys.argv) > 1 else 24
out = {"cases": [], "times": [times() for _ in range(8)], "gifs": [gifs(random.randint(2, 5)) for _ in range(n // 2)],
       "refused": refused()}
while len(out["cases"]) < n:
    try:
        if c := case():
            out["cases"].append(c)
    except Exception as e:
        print(e, file=sys.stderr)
lists = ",\n".join(f'"{k}": [\n' + ",\n".join(json.dumps(x) for x in v) + "\n]" for k, v in out.items())
print("{" + lists + "}")
