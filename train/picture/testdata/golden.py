"""Makes golden.json: small image files and what Pillow, torchvision and transformers make of them.

    pip install torch torchvision transformers pillow numpy opencv-python-headless
    python golden.py > golden.json

files:   encoded files (base64), the size turned upright, and the SHA-256 of the RGB pixels as the library datasets
         loads them: ImageOps.exif_transpose, then convert("RGB").
resizes: of pattern(width, height), the SHA-256 of the pixels that torchvision resizes it to.
sizes:   smart_resize: height, width, factor, min_pixels, max_pixels, and the two results; zeros: refused.
patches: settings, a file or the size of a pattern, the grid, the SHA-256 of pixel_values (float32, little-endian) and a
         few of the values.
"""
import base64
import hashlib
import io
import json
import struct
import sys
import zlib

import cv2
import numpy as np
import torch
from PIL import Image, ImageOps
from torchvision.transforms.v2 import functional as F
from transformers import Qwen2VLImageProcessor, Qwen2VLImageProcessorPil
from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize

rng = np.random.default_rng(7)
files = {}


def sha(x):
    return hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()


def pattern(w, h):
    """An image by a formula that the tests repeat: gradients and noise in squares of 16 pixels."""
    y, x, c = np.meshgrid(np.arange(h), np.arange(w), np.arange(3), indexing="ij")
    noise = (((x * x * 3 + y * y * 5 + x * y * 7 + c * 85) >> 3) ^ (x * 37 + y * 91 + c * 53)) & 255
    smooth = (x * 255 // w + y * 255 // h * (c + 1) // 2 + c * 40) & 255
    return np.where((x // 16 + y // 16) % 2 == 0, noise, smooth).astype(np.uint8)


def scene(w, h):
    """A photo: soft light, edges, a little grain."""
    y, x = np.mgrid[0:h, 0:w]
    out = np.stack([128 + 90 * np.sin(x / 9 + 1) * np.cos(y / 13), 255 * x / max(w, 2) - 30 * (y > h / 3),
                    90 + 120 * ((x - w / 2) ** 2 + (y - h / 2) ** 2 < (min(w, h) / 3) ** 2)], -1)
    return np.clip(out + rng.normal(0, 3, out.shape), 0, 255).astype(np.uint8)


def rgb(data):
    return np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB"))


def add(name, data):
    files[name] = data


def save(name, image, format, **how):
    if isinstance(image, np.ndarray):
        image = Image.fromarray(image)
    f = io.BytesIO()
    image.save(f, format, **how)
    add(name, f.getvalue())


def png(name, w, h, bits, kind, rows, *chunks):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    add(name, b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, bits, kind, 0, 0, 0)) +
        b"".join(chunk(*c) for c in chunks) + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + r for r in rows), 9)) +
        chunk(b"IEND", b""))


def pngs():
    im = Image.fromarray(scene(31, 23))
    alpha = Image.fromarray((np.arange(31 * 23).reshape(23, 31) * 7 % 256).astype(np.uint8))
    save("rgb.png", im, "PNG")
    save("l.png", im.convert("L"), "PNG")
    save("1.png", im.convert("1"), "PNG")
    rgba = im.copy()
    rgba.putalpha(alpha)
    save("rgba.png", rgba, "PNG")
    save("la.png", rgba.convert("LA"), "PNG")
    p = im.quantize(40)
    save("p.png", p, "PNG")
    save("p4.png", im.quantize(11), "PNG", bits=4)
    save("ptransparent.png", p, "PNG", transparency=bytes(range(0, 240, 6)))
    save("ltransparent.png", im.convert("L"), "PNG", transparency=int(np.asarray(im.convert("L"))[3, 4]))
    save("rgbtransparent.png", im, "PNG", transparency=im.getpixel((2, 5)))
    for bits in 1, 2, 4:
        png(f"l{bits}.png", 16, 5, bits, 0, [bytes(rng.integers(0, 256, 2 * bits, np.uint8)) for _ in range(5)])
    for name, kind, n in ("rgb16", 2, 3), ("la16", 4, 2), ("rgba16", 6, 4):
        png(name + ".png", 7, 5, 16, kind, [bytes(rng.integers(0, 256, 14 * n, np.uint8)) for _ in range(5)])
    exif = Image.Exif()
    exif[274] = 6
    save("turned6.png", im.crop((0, 0, 11, 5)), "PNG", exif=exif)


def jpegs():
    big = scene(75, 58)
    for w, h in (1, 1), (2, 2), (3, 5), (4, 3), (17, 9), (75, 58):
        for name, sub in ("444", 0), ("422", 1), ("420", 2):
            save(f"{w}x{h}-{name}.jpg", big[:h, :w], "JPEG", subsampling=sub, quality=88)
    save("grey.jpg", Image.fromarray(big).convert("L"), "JPEG")
    save("coarse.jpg", big, "JPEG", quality=12)
    save("fine.jpg", big, "JPEG", quality=98, optimize=True)
    save("restarts.jpg", big, "JPEG", restart_marker_blocks=3)
    save("saturated.jpg", np.where(pattern(40, 40) > 127, 255, 0).astype(np.uint8), "JPEG", quality=40)
    save("kept.jpg", big, "JPEG", keep_rgb=True)
    save("cmyk.jpg", Image.fromarray(np.concatenate([big, big[::-1, ::-1, :1] // 2], -1), "CMYK"), "JPEG")
    adobe = files["cmyk.jpg"].index(b"Adobe")
    ycck = bytearray(files["cmyk.jpg"])
    ycck[adobe + 11] = 2
    add("ycck.jpg", bytes(ycck))
    add("cmykplain.jpg", files["cmyk.jpg"].replace(b"Adobe", b"adobe"))
    add("rgbplain.jpg", files["kept.jpg"].replace(b"Adobe", b"adobe"))
    add("yccplain.jpg", files["75x58-422.jpg"].replace(b"JFIF", b"jfif"))
    add("trailing.jpg", files["75x58-420.jpg"][:-2] + b"junk after the last block")
    for name, sub in ("444", 0), ("422", 1), ("420", 2):
        save(f"progressive{name}.jpg", big, "JPEG", subsampling=sub, progressive=True)
    save("progressivegrey.jpg", Image.fromarray(big).convert("L"), "JPEG", progressive=True)
    save("progressiverestarts.jpg", big, "JPEG", progressive=True, restart_marker_blocks=5)
    for name, sub in ("440", cv2.IMWRITE_JPEG_SAMPLING_FACTOR_440), ("411", cv2.IMWRITE_JPEG_SAMPLING_FACTOR_411):
        add(name + ".jpg", cv2.imencode(".jpg", big, [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sub])[1].tobytes())
    for turn in range(1, 9):
        exif = Image.Exif()
        exif[274] = turn
        save(f"turned{turn}.jpg", big[:5, :11], "JPEG", exif=exif, subsampling=0)
    save("xmp.jpg", big[:5, :11], "JPEG", xmp=b'<rdf:Description tiff:Orientation="8"/>')


def webps():
    im = Image.fromarray(scene(33, 27))
    rgba = im.copy()
    rgba.putalpha(Image.fromarray((np.arange(33 * 27).reshape(27, 33) * 5 % 256).astype(np.uint8)))
    save("lossy.webp", im, "WEBP", quality=70)
    save("odd.webp", scene(50, 41), "WEBP", quality=90)
    save("dot.webp", scene(1, 1), "WEBP")
    save("even.webp", scene(2, 6), "WEBP")
    save("lossless.webp", im, "WEBP", lossless=True)
    save("alpha.webp", rgba, "WEBP", quality=60)
    save("losslessalpha.webp", rgba, "WEBP", lossless=True, exact=True)
    exif = Image.Exif()
    exif[274] = 8
    save("turned8.webp", rgba, "WEBP", lossless=True, exact=True, exif=exif)
    save("turned8lossy.webp", im, "WEBP", exif=exif)


def gifs():
    p = Image.fromarray(scene(30, 21)).quantize(32)
    save("plain.gif", p, "GIF")
    save("transparent.gif", p, "GIF", transparency=5)
    save("grey.gif", p.convert("L"), "GIF", interlace=0)
    save("interlaced.gif", p, "GIF", interlace=1)
    save("moving.gif", p, "GIF", save_all=True, append_images=[p.rotate(90)])
    plain = files["plain.gif"]
    def placed(extension):  # the image moves within a larger canvas
        at = plain.index(b"\x2c\x00\x00\x00\x00")
        return (plain[:6] + struct.pack("<HH", 37, 29) + plain[10:at] + extension + b"\x2c" +
                struct.pack("<HH", 4, 6) + plain[at + 5:])
    add("placed.gif", placed(b""))
    add("placedtransparent.gif", placed(b"\x21\xf9\x04\x01\x00\x00\x03\x00"))


def bmps():
    im = Image.fromarray(scene(13, 9))
    save("rgb.bmp", im, "BMP")
    save("l.bmp", im.convert("L"), "BMP")
    save("p.bmp", im.quantize(20), "BMP")
    rgba = im.copy()
    rgba.putalpha(77)
    save("rgba.bmp", rgba, "BMP")


def resizes():
    out = []
    for w, h, w2, h2 in ((64, 48, 56, 56), (30, 20, 84, 56), (200, 10, 812, 56), (257, 131, 56, 28), (56, 70, 56, 28),
                         (90, 56, 28, 56), (1, 1, 28, 28), (3, 2, 84, 56), (300, 300, 28, 28), (640, 480, 644, 476),
                         (1024, 768, 392, 280), (1003, 61, 1008, 56), (500, 700, 512, 704), (2, 400, 28, 812)):
        x = pattern(w, h)
        y = Image.fromarray(x).resize((w2, h2), Image.BICUBIC)
        t = F.resize(torch.from_numpy(x).permute(2, 0, 1), [h2, w2], F.InterpolationMode.BICUBIC, antialias=True)
        t = t.permute(1, 2, 0).numpy()
        d = np.abs(np.asarray(y).astype(int) - t)
        print(f"{w}x{h} to {w2}x{h2}: Pillow and torchvision differ in {(d > 0).mean():.4%}, by {d.max()}", file=sys.stderr)
        out.append({"from": [w, h], "to": [w2, h2], "sha256": sha(t)})
    return out


def sizes():
    out = []
    for i in range(300):
        h, w = (int(2 ** x) for x in rng.uniform(0, 13, 2))
        factor = (28, 32, 14)[i % 3]
        least, most = ((3136, 12845056), (65536, 16777216), (256 * 784, 1280 * 784), (784, 50176))[i % 4]
        if i % 5 == 0:  # halves
            h, w = h // factor * factor + factor // 2, w // factor * factor + factor // 2
        try:
            out.append([h, w, factor, least, most, *smart_resize(h, w, factor, least, most)])
        except ValueError:
            out.append([h, w, factor, least, most, 0, 0])
    return out


def patches():
    qwen3 = {"patch_size": 16, "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
             "size": {"shortest_edge": 65536, "longest_edge": 16777216}}
    small = {"min_pixels": 784, "max_pixels": 5000}
    out = []
    for settings, what in (({}, "75x58-420.jpg"), ({}, "rgba.png"), (small, "odd.webp"), (small, "placed.gif"),
                           (qwen3, "turned6.jpg"), ({}, [640, 480]), (qwen3, [333, 517]), (small, [300, 200]),
                           ({"merge_size": 1, "temporal_patch_size": 1, "max_pixels": 9000}, [200, 120]),
                           ({"rescale_factor": 0.01, "image_mean": [0.1, 0.2, 0.3], **small}, [50, 20])):
        x = Image.fromarray(pattern(*what) if isinstance(what, list) else rgb(files[what]))
        both = []
        for kind in Qwen2VLImageProcessor, Qwen2VLImageProcessorPil:
            got = kind(**json.loads(json.dumps(settings)))(images=[x], return_tensors="np")
            both.append(np.asarray(got["pixel_values"], dtype=np.float32))
        v = both[0]
        out.append({"settings": settings, "image": what, "grid": [int(n) for n in got["image_grid_thw"][0]],
                    "sha256": sha(v), "every": v.size // 12, "values": [float(n) for n in v.reshape(-1)[::v.size // 12]]})
        d = np.abs(both[0] - both[1])
        print(f"{what}: the two classes differ by {d.max():.3g}, in {(d > 1e-5).mean():.4%}", file=sys.stderr)
    return out


for make in pngs, jpegs, webps, gifs, bmps:
    make()
print(json.dumps({
    "files": [{"name": k, "width": rgb(v).shape[1], "height": rgb(v).shape[0], "sha256": sha(rgb(v)),
               "data": base64.b64encode(v).decode()} for k, v in files.items()],
    "resizes": resizes(), "sizes": sizes(), "patches": patches()}, indent=0))
