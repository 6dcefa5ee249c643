"""Makes quantized.json: small weights that the formats' own libraries packed, and what they read back.

    pip install torch safetensors gptqmodel==7.7.0 autoawq==0.2.9 compressed-tensors==0.20.1 bitsandbytes==0.50.2
    python quantized.py > quantized.json

Each case has the settings of config.json, the tensors of module m (bytes in base64), and the type and the SHA-256 of
the weight's elements, little-endian and row-major, rounded to the model's type as transformers does it.
"""
import base64
import hashlib
import json

import torch

OUT, IN = 32, 32
NAMES = {torch.float16: ("F16", "float16"), torch.bfloat16: ("BF16", "bfloat16"), torch.float32: ("F32", "float32"),
         torch.int32: ("I32", ""), torch.int64: ("I64", ""), torch.uint8: ("U8", ""), torch.int8: ("I8", ""),
         torch.float8_e4m3fn: ("F8_E4M3", "")}
cases = []


def raw(x):
    return x.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def add(name, settings, dtype, tensors, weight):
    weight = weight.to(dtype)
    cases.append({
        "name": name, "config": {"torch_dtype": NAMES[dtype][1], "quantization_config": settings},
        "tensors": [{"name": "m." + k, "dtype": NAMES[x.dtype][0], "shape": list(x.shape),
                     "data": base64.b64encode(raw(x)).decode()} for k, x in sorted(tensors.items())],
        "shape": list(weight.shape), "dtype": NAMES[dtype][0], "sha256": hashlib.sha256(raw(weight)).hexdigest()})


def random(dtype=torch.float32):
    return (torch.randn(OUT, IN) * 0.05).to(dtype)


def gptq(bits, version, order, dtype):
    from types import SimpleNamespace

    from gptqmodel.nn_modules.qlinear.torch import TorchLinear
    from gptqmodel.utils.model import convert_gptq_v1_to_v2_format_module, convert_gptq_v2_to_v1_format_module
    size = 16
    linear = torch.nn.Linear(IN, OUT, bias=False)
    linear.weight.data = random()
    groups = torch.arange(IN, dtype=torch.int32) // size
    if order:
        groups = groups[torch.randperm(IN)]
    zeros = torch.randint(0, 2 ** bits, (OUT, IN // size)).float()
    scales = torch.rand(OUT, IN // size) * 0.02 + 0.001
    module = TorchLinear(bits=bits, group_size=size, sym=False, desc_act=order, in_features=IN, out_features=OUT,
                         bias=False, pack_dtype=torch.int32, register_buffers=True)
    module.pack_original(linear, scales, zeros, g_idx=groups)
    module.qzero_format(format=2)
    if version == "gptq":
        convert_gptq_v2_to_v1_format_module(module, SimpleNamespace(bits=bits, pack_dtype=torch.int32))
    tensors = {k: getattr(module, k).clone() for k in ("qweight", "qzeros", "scales", "g_idx")}
    if version == "gptq":
        convert_gptq_v1_to_v2_format_module(module, bits=bits, pack_dtype=torch.int32)
    module.eval()
    module.post_init()
    add(f"{version}, {bits} bits", {"quant_method": "gptq", "bits": bits, "group_size": size, "desc_act": order,
                                    "sym": False, "checkpoint_format": version}, dtype, tensors,
        module.dequantize_weight().T)


def awq(dtype):
    from awq.modules.linear.gemm import WQLinear_GEMM
    from awq.utils.packing_utils import dequantize_gemm
    size = 16
    linear = torch.nn.Linear(IN, OUT, bias=False)
    linear.weight.data = random()
    scales = torch.rand(IN // size, OUT) * 0.02 + 0.001
    zeros = torch.randint(0, 16, (IN // size, OUT)).float()
    m = WQLinear_GEMM.from_linear(linear, 4, size, False, scales, zeros)
    add("awq", {"quant_method": "awq", "bits": 4, "group_size": size, "version": "gemm"}, dtype,
        {k: getattr(m, k) for k in ("qweight", "qzeros", "scales")},
        dequantize_gemm(m.qweight, m.qzeros, m.scales, 4, size).T)


def compressed(kind, bits, symmetric, strategy, size, dtype):
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
    four = kind == "nvfp4-pack-quantized"
    more = {"scale_dtype": torch.float8_e4m3fn, "zp_dtype": torch.float8_e4m3fn} if four else {}
    args = QuantizationArgs(num_bits=bits, type="float" if four else "int", symmetric=symmetric, strategy=strategy,
                            group_size=size, **more)
    scheme = QuantizationScheme(targets=["Linear"], weights=args, format=kind)
    w = random(dtype)
    x = w.reshape(OUT, -1, size) if size else w.reshape(OUT, 1, IN)
    state = {"weight": w}
    whole = None
    if four:
        whole = state["weight_global_scale"] = generate_gparam(w.min().reshape(1), w.max().reshape(1))
    scale, zero = calculate_qparams(x.amin(-1), x.amax(-1), args, global_scale=whole)
    state["weight_scale"] = scale
    if not four:
        state["weight_zero_point"] = zero
    compressor = BaseCompressor.get_value_from_registry(kind)
    packed = {k: x for k, x in compressor.compress(state, scheme).items() if x is not None}
    weights = {"num_bits": bits, "type": args.type, "symmetric": symmetric, "strategy": strategy, "group_size": size}
    add(f"{kind}, {bits} bits", {"quant_method": "compressed-tensors", "format": kind, "config_groups": {
        "group_0": {"targets": ["Linear"], "weights": weights}}}, dtype, packed,
        compressor.decompress(dict(packed), scheme)["weight"])


def four(kind, nested, dtype):
    import bitsandbytes as b
    w = random(dtype)
    q, state = b.functional.quantize_4bit(w, blocksize=64, compress_statistics=nested, quant_type=kind)
    tensors = {"weight": q}
    tensors.update({"weight." + k: x for k, x in state.as_dict(packed=True).items()})
    add(f"bitsandbytes {kind}", {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": kind},
        dtype, tensors, b.functional.dequantize_4bit(q, state))


def eight(dtype):
    import bitsandbytes as b
    q, scales, _ = b.functional.int8_vectorwise_quant(random(torch.float16))
    add("LLM.int8", {"quant_method": "bitsandbytes", "load_in_8bit": True}, dtype,
        {"weight": q, "SCB": scales, "weight_format": torch.tensor(0, dtype=torch.uint8)},
        b.functional.int8_vectorwise_dequant(q, scales))


if __name__ == "__main__":
    torch.manual_seed(0)
    gptq(3, "gptq", True, torch.float16)
    gptq(4, "gptq", False, torch.bfloat16)
    gptq(4, "gptq_v2", True, torch.float16)
    awq(torch.float16)
    compressed("pack-quantized", 4, False, "group", 16, torch.bfloat16)
    compressed("int-quantized", 8, True, "channel", None, torch.bfloat16)
    compressed("nvfp4-pack-quantized", 4, True, "tensor_group", 16, torch.bfloat16)
    four("nf4", True, torch.bfloat16)
    four("fp4", False, torch.float16)
    eight(torch.bfloat16)
    print(json.dumps({"made": "quantized.py", "cases": cases}, indent=1))
