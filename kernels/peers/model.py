"""Writes a model of the shape of Qwen2.5-0.5B with random weights: FOLDER/hf for exp and
FOLDER/bf16.gguf, FOLDER/f32.gguf, FOLDER/f16.gguf for engines that read GGUF.

    python model.py FOLDER [LAYERS]
"""
import json
import os
import sys

import gguf
import numpy as np

WIDTH, HEADS, KV, HEAD, FFN, VOCAB, CONTEXT = 896, 14, 2, 64, 4864, 151936, 4096


def tensors(layers):
    """Yields HF's name, GGUF's name and float32 values that bf16 holds exactly."""
    rng = np.random.default_rng(1)

    def random(*shape):
        x = rng.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
        return (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)

    def linear(i, hf, short, out, inner, bias=False):
        yield f"model.layers.{i}.{hf}.weight", f"blk.{i}.{short}.weight", random(out, inner)
        if bias:
            yield f"model.layers.{i}.{hf}.bias", f"blk.{i}.{short}.bias", random(out)

    yield "model.embed_tokens.weight", "token_embd.weight", random(VOCAB, WIDTH)
    yield "model.norm.weight", "output_norm.weight", np.ones(WIDTH, np.float32)
    for i in range(layers):
        for hf, short in (("input_layernorm", "attn_norm"), ("post_attention_layernorm", "ffn_norm")):
            yield f"model.layers.{i}.{hf}.weight", f"blk.{i}.{short}.weight", np.ones(WIDTH, np.float32)
        yield from linear(i, "self_attn.q_proj", "attn_q", HEADS * HEAD, WIDTH, True)
        yield from linear(i, "self_attn.k_proj", "attn_k", KV * HEAD, WIDTH, True)
        yield from linear(i, "self_attn.v_proj", "attn_v", KV * HEAD, WIDTH, True)
        yield from linear(i, "self_attn.o_proj", "attn_output", WIDTH, HEADS * HEAD)
        yield from linear(i, "mlp.gate_proj", "ffn_gate", FFN, WIDTH)
        yield from linear(i, "mlp.up_proj", "ffn_up", FFN, WIDTH)
        yield from linear(i, "mlp.down_proj", "ffn_down", WIDTH, FFN)


def write_hf(folder, layers):
    os.makedirs(folder, exist_ok=True)
    config = {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "torch_dtype": "bfloat16", "hidden_act": "silu",
        "hidden_size": WIDTH, "intermediate_size": FFN, "num_hidden_layers": layers, "num_attention_heads": HEADS,
        "num_key_value_heads": KV, "max_position_embeddings": CONTEXT, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
        "tie_word_embeddings": True, "vocab_size": VOCAB, "bos_token_id": 0, "eos_token_id": 1, "use_sliding_window": False,
    }
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f, indent=1)
    header, offset = {}, 0
    for name, _, x in tensors(layers):
        header[name] = {"dtype": "BF16", "shape": list(x.shape), "data_offsets": [offset, offset + 2 * x.size]}
        offset += 2 * x.size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for _, _, x in tensors(layers):
            f.write((x.view(np.uint32) >> 16).astype(np.uint16).tobytes())


def write_gguf(path, layers, kind):
    w = gguf.GGUFWriter(path, "qwen2")
    w.add_name("random")
    w.add_context_length(CONTEXT)
    w.add_embedding_length(WIDTH)
    w.add_block_count(layers)
    w.add_feed_forward_length(FFN)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV)
    w.add_rope_freq_base(1e6)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_file_type(kind)
    # Engines want a tokenizer. The scripts here give them ids.
    from_byte = [chr(b) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174 else None for b in range(256)]
    spare = iter(range(256, 512))
    tokens = [c or chr(next(spare)) for c in from_byte]
    tokens += [f"t{i}" for i in range(len(tokens), VOCAB - 1)] + ["<|endoftext|>"]
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2")
    w.add_token_list(tokens)
    w.add_token_types([gguf.TokenType.NORMAL] * (VOCAB - 1) + [gguf.TokenType.CONTROL])
    w.add_token_merges(["a b"])
    w.add_eos_token_id(VOCAB - 1)
    for _, name, x in tensors(layers):
        if x.ndim == 1 or kind == gguf.LlamaFileType.ALL_F32:
            w.add_tensor(name, x)
        elif kind == gguf.LlamaFileType.MOSTLY_F16:
            w.add_tensor(name, x.astype(np.float16))
        else:
            h = (x.view(np.uint32) >> 16).astype(np.uint16)
            w.add_tensor(name, h.view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


if __name__ == "__main__":
    to, depth = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 24
    write_hf(os.path.join(to, "hf"), depth)
    write_gguf(os.path.join(to, "bf16.gguf"), depth, gguf.LlamaFileType.MOSTLY_BF16)
    write_gguf(os.path.join(to, "f16.gguf"), depth, gguf.LlamaFileType.MOSTLY_F16)
    write_gguf(os.path.join(to, "f32.gguf"), depth, gguf.LlamaFileType.ALL_F32)
