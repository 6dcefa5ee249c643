"""Makes processors.json: the sizes and patches of image processors other than Qwen's, by transformers with torchvision.

    pip install torch torchvision transformers pillow numpy
    python processors.py > processors.json

sizes:   settings and, for widths and heights, rows and columns of patches; zeros: refused. A tile has 28 of 16 pixels.
patches: as in golden.json, of pattern(width, height) of golden.py. Tiles are put into the order of Qwen's patches.
"""
import ast
import hashlib
import json
import pathlib

import numpy as np
from PIL import Image
from transformers import Glm4vImageProcessor, GotOcr2ImageProcessor
from transformers.models.glm4v.image_processing_glm4v import smart_resize

rng = np.random.default_rng(11)
source = ast.parse((pathlib.Path(__file__).parent / "golden.py").read_text())
keep = [f for f in source.body if isinstance(f, ast.FunctionDef) and f.name in ("pattern", "sha")]
exec(compile(ast.Module(keep, []), "golden.py", "exec"))  # pattern and sha

GLM = dict(image_processor_type="Glm4vImageProcessor")
TILES = dict(image_processor_type="GotOcr2ImageProcessorFast", size=dict(height=448, width=448), min_patches=1,
             max_patches=12, image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225], crop_to_patches=False)


def glm_sizes(settings):
    p = Glm4vImageProcessor(**settings)
    for i in range(60):
        h, w = (int(2 ** x) for x in rng.uniform(0, 12, 2))
        try:
            n = p.get_number_of_image_patches(h, w)
            a, b = smart_resize(2, h, w, 2, 28, p.size["shortest_edge"], p.size["longest_edge"])
            assert n == a // 14 * (b // 14)
            yield [w, h, a // 14, b // 14]
        except ValueError:
            yield [w, h, 0, 0]


def tile_sizes(settings):
    p = GotOcr2ImageProcessor(**settings)
    shapes = [(448 * a, 448 * b) for a in (1, 2, 3) for b in (1, 2, 4)] + [
        tuple(int(2 ** x) for x in rng.uniform(3, 12, 2)) for _ in range(60)]
    for w, h in shapes:
        n = p.get_number_of_image_patches(h, w, dict(crop_to_patches=True))
        yield [w, h, n * 28, 28]


def values(settings, what):
    x = Image.fromarray(pattern(*what))
    if settings["image_processor_type"].startswith("Glm"):
        got = Glm4vImageProcessor(**settings)(images=[x], return_tensors="np")
        v, (_, rows, columns) = got["pixel_values"], got["image_grid_thw"][0]
    else:
        got = GotOcr2ImageProcessor(**settings)(images=[x], return_tensors="np", crop_to_patches=True)
        v = got["pixel_values"]
        n, side, p = len(v), settings["size"]["height"], 14
        assert n == got["num_patches"][0]
        g = side // p
        v = v.reshape(n, 3, g // 2, 2, p, g // 2, 2, p).transpose(0, 2, 5, 3, 6, 1, 4, 7)
        rows, columns = n * g, g
        v = v.reshape(rows * columns, -1)
    v = np.ascontiguousarray(v, dtype=np.float32)
    return {"settings": settings, "image": what, "grid": [1, int(rows), int(columns)], "sha256": sha(v),
            "every": v.size // 5, "values": [float(n) for n in v.reshape(-1)[::v.size // 5]]}


small = dict(TILES, size=dict(height=56, width=56), max_patches=6)
print(json.dumps({
    "sizes": [{"settings": s, "of": list(f(s))} for f, s in (
        (glm_sizes, GLM), (glm_sizes, dict(GLM, size=dict(shortest_edge=50176, longest_edge=200704))),
        (tile_sizes, TILES), (tile_sizes, dict(TILES, min_patches=2, max_patches=5)),
        (tile_sizes, dict(TILES, max_patches=1)))],
    "patches": [values(s, what) for s, what in (
        (GLM, [150, 90]), (GLM, [20, 45]), (dict(GLM, size=dict(shortest_edge=6272, longest_edge=12544)), [200, 120]),
        (small, [150, 70]), (small, [56, 56]), (small, [30, 200]), (dict(small, min_patches=2), [100, 100]))],
}, indent=0))
