"""Makes gemma.json: prompts of Gemma 3's processor, by transformers, with a tokenizer of bytes.

    pip install torch torchvision transformers pillow
    python gemma.py > gemma.json

tokenizer: tokenizer.json. Two line ends, and three, are one token.
prompts:   messages, the number of images, and the ids.
"""
import json

from PIL import Image
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import Gemma3ImageProcessor, Gemma3Processor, PreTrainedTokenizerFast

TEMPLATE = ("{{ bos_token }}{% for message in messages %}{{ '<start_of_turn>' + message['role'] + '\n' }}{% if "
            "message['content'] is string %}{{ message['content'] | trim }}{% else %}{% for item in message['content'] %}"
            "{% if item['type'] == 'image' %}{{ '<start_of_image>' }}{% elif item['type'] == 'text' %}{{ item['text'] | trim }}"
            "{% endif %}{% endfor %}{% endif %}{{ '<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}"
            "{{ '<start_of_turn>model\n' }}{% endif %}")

vocab = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
vocab["ĊĊ"], vocab["ĊĊĊ"] = len(vocab), len(vocab) + 1
tok = Tokenizer(models.BPE(vocab=vocab, merges=[("Ċ", "Ċ"), ("ĊĊ", "Ċ")]))
tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
tok.decoder = decoders.ByteLevel()
tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in (
    "<bos>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<end_of_image>", "<image_soft_token>")])


def text(s):
    return {"type": "text", "text": s}


def prompts(p):
    image = {"type": "image"}
    for messages, images in (
            ([{"role": "user", "content": [image, text("Find x.")]}], 1),
            ([{"role": "user", "content": [text("One\n"), image, text("\nor"), image]}], 2),
            ([{"role": "user", "content": [text("No image.")]}], 0)):
        prompt = p.apply_chat_template(messages, add_generation_prompt=True)
        shown = [[Image.new("RGB", (8, 8))] * images] if images else None
        ids = p(text=[prompt], images=shown, add_special_tokens=False)["input_ids"][0]
        yield {"messages": messages, "images": images, "ids": [int(i) for i in ids]}


fast = PreTrainedTokenizerFast(tokenizer_object=tok, bos_token="<bos>", eos_token="<end_of_turn>", extra_special_tokens=dict(
    boi_token="<start_of_image>", eoi_token="<end_of_image>", image_token="<image_soft_token>"))
processor = Gemma3Processor(Gemma3ImageProcessor(size=dict(height=16, width=16)), fast, chat_template=TEMPLATE,
                            image_seq_length=4)
print(json.dumps({"template": TEMPLATE, "tokenizer": json.loads(tok.to_str()), "prompts": list(prompts(processor))}))
