"""Makes processors.json: the sizes and patches of image processors other than Qwen's, by transformers with torchvision.

    pip install torch torchvision transformers pillow numpy
    python processors.py > processors.json

sizes:   settings and, for widths and heights, rows and columns of patches; zeros: refused. A patch of a tile has 16
         pixels a side.
patches: as in golden.json, of pattern(width, height) of golden.py. Tiles are put into the order of Qwen's patches.
"""
import ast
import hashlib
import json
import pathlib

import numpy as np
from PIL import Image
from transformers import (Gemma3ImageProcessor, Glm4vImageProcessor, GotOcr2ImageProcessor, Idefics3ImageProcessor, PixtralImageProcessor,
                          SmolVLMImageProcessor)
from transformers.models.glm4v.image_processing_glm4v import smart_resize

rng = np.random.default_rng(11)
source = ast.parse((pathlib.Path(__file__).parent / "golden.py").read_text())
keep = [f for f in source.body if isinstance(f, ast.FunctionDef) and f.name in ("pattern", "sha")]
exec(compile(ast.Module(keep, []), "golden.py", "exec"))  # pattern and sha

GLM = dict(image_processor_type="Glm4vImageProcessor")
TILES = dict(image_processor_type="GotOcr2ImageProcessorFast", size=dict(height=448, width=448), min_patches=1,
             max_patches=12, image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225], crop_to_patches=False)
SPLIT = dict(image_processor_type="SmolVLMImageProcessor", size=dict(longest_edge=2048), resample=1, do_pad=True,
             max_image_size=dict(longest_edge=512), do_image_splitting=True, image_mean=[0.5] * 3, image_std=[0.5] * 3)
SQUARE = dict(image_processor_type="Gemma3ImageProcessorFast", size=dict(height=112, width=112), resample=2,
              image_mean=[0.5] * 3, image_std=[0.5] * 3)
FIT = dict(image_processor_type="PixtralImageProcessorFast", size=dict(longest_edge=1540),
           patch_size=dict(height=14, width=14))


def fitted(settings, x):
    """Pixels with what PixtralProcessor passes on: the side of a token."""
    return PixtralImageProcessor(size=settings["size"])(images=[x], patch_size=28, return_tensors="np")["pixel_values"][0]


def fit_sizes(settings):
    for w, h in [(28, 29), (1540, 1541), (1, 1540)] + [tuple(int(2 ** x) for x in rng.uniform(0, 12, 2)) for _ in range(22)]:
        try:
            _, a, b = fitted(settings, Image.new("RGB", (w, h))).shape
            yield [w, h, a // 14, b // 14]
        except (RuntimeError, ValueError):
            yield [w, h, 0, 0]


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


def idefics(settings):
    of = SmolVLMImageProcessor if settings["image_processor_type"].startswith("Smol") else Idefics3ImageProcessor
    return of(**{k: v for k, v in settings.items() if k != "image_processor_type"})


def split_sizes(settings):
    p, side = idefics(settings), settings["max_image_size"]["longest_edge"] // 16
    for w, h in [(512, 512), (1024, 1536), (1, 300)] + [tuple(int(2 ** x) for x in rng.uniform(0, 11, 2)) for _ in range(22)]:
        got = p(images=[Image.new("RGB", (w, h))], return_tensors="pt", return_row_col_info=True)
        n, rows, cols = got["pixel_values"].shape[1], got["rows"][0][0], got["cols"][0][0]
        assert n == rows * cols + 1
        yield [w, h, n * side, side]


def values(settings, what):
    x = Image.fromarray(pattern(*what))
    if settings["image_processor_type"].startswith("Glm"):
        got = Glm4vImageProcessor(**settings)(images=[x], return_tensors="np")
        v, (_, rows, columns) = got["pixel_values"], got["image_grid_thw"][0]
    elif settings["image_processor_type"].startswith("Pix"):
        v, p = fitted(settings, x), 14
        rows, columns = v.shape[1] // p, v.shape[2] // p
        v = v.reshape(3, rows // 2, 2, p, columns // 2, 2, p).transpose(1, 4, 2, 5, 0, 3, 6).reshape(rows * columns, -1)
    else:
        p = 14
        if "max_image_size" in settings:
            v = idefics(settings)(images=[x], return_tensors="np")["pixel_values"][0]
            g = v.shape[-1] // p
            v = np.ascontiguousarray(v[:, :, :g * p, :g * p])  # the tower's convolution reads whole patches
        elif settings["image_processor_type"].startswith("Gemma"):
            v, g = Gemma3ImageProcessor(**settings)(images=[x], return_tensors="np")["pixel_values"], 112 // p
        else:
            got = GotOcr2ImageProcessor(**settings)(images=[x], return_tensors="np", crop_to_patches=True)
            v, g = got["pixel_values"], settings["size"]["height"] // p
            assert len(v) == got["num_patches"][0]
        n = len(v)
        v = v.reshape(n, 3, g // 2, 2, p, g // 2, 2, p).transpose(0, 2, 5, 3, 6, 1, 4, 7)
        rows, columns = n * g, g
        v = v.reshape(rows * columns, -1)
    v = np.ascontiguousarray(v, dtype=np.float32)
    return {"settings": settings, "image": what, "grid": [1, int(rows), int(columns)], "sha256": sha(v),
            "every": v.size // 5, "values": [float(n) for n in v.reshape(-1)[::v.size // 5]]}


split = dict(SPLIT, size=dict(longest_edge=150), max_image_size=dict(longest_edge=60))
small = dict(TILES, size=dict(height=56, width=56), max_patches=6)
print(json.dumps({
    "sizes": [{"settings": s, "of": list(f(s))} for f, s in (
        (glm_sizes, GLM), (glm_sizes, dict(GLM, size=dict(shortest_edge=50176, longest_edge=200704))),
        (tile_sizes, TILES), (tile_sizes, dict(TILES, min_patches=2, max_patches=5)),
        (tile_sizes, dict(TILES, max_patches=1)), (split_sizes, SPLIT),
        (split_sizes, dict(SPLIT, image_processor_type="Idefics3ImageProcessor", size=dict(longest_edge=1456),
                           max_image_size=dict(longest_edge=364))),
        (split_sizes, dict(SPLIT, do_image_splitting=False)), (fit_sizes, FIT),
        (fit_sizes, dict(FIT, size=dict(longest_edge=100))))],
    "patches": [values(s, what) for s, what in (
        (GLM, [150, 90]), (GLM, [20, 45]), (dict(GLM, size=dict(shortest_edge=6272, longest_edge=12544)), [200, 120]),
        (small, [150, 70]), (small, [56, 56]), (small, [30, 200]), (dict(small, min_patches=2), [100, 100]), (split, [150, 90]),
        (split, [20, 45]), (dict(split, size=dict(longest_edge=50)), [200, 120]),
        (dict(split, do_image_splitting=False), [90, 110]), (dict(split, resample=3), [99, 31]),
        (FIT, [150, 90]), (dict(FIT, size=dict(longest_edge=100)), [31, 190]), (SQUARE, [150, 90]), (SQUARE, [70, 300]),
        (dict(SQUARE, resample=3), [70, 300]))],
}, indent=0))
