"""Makes tiles.json: prompts of SmolVLM's processor, by transformers, with its chat template and a tokenizer of bytes.

    pip install torch torchvision transformers pillow num2words
    python tiles.py > tiles.json

tokenizer: tokenizer.json. Two line ends are one token, and not all places of tiles are.
prompts:   messages with images by width and height, and the ids.
"""
import json

from PIL import Image
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import Idefics3ImageProcessor, Idefics3Processor, PreTrainedTokenizerFast
from transformers import SmolVLMImageProcessor, SmolVLMProcessor, SmolVLMVideoProcessor

TEMPLATE = ("<|im_start|>{% for message in messages %}{{message['role'] | capitalize}}{% if message['content'][0]['type'] == "
            "'image' %}{{':'}}{% else %}{{': '}}{% endif %}{% for line in message['content'] %}{% if line['type'] == 'text' %}"
            "{{line['text']}}{% elif line['type'] == 'image' %}{{ '<image>' }}{% endif %}{% endfor %}<end_of_utterance>\n"
            "{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}")

vocab = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
vocab["ĊĊ"] = len(vocab)
tok = Tokenizer(models.BPE(vocab=vocab, merges=[("Ċ", "Ċ")]))
tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tok.decoder = decoders.ByteLevel()
tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in (
    "<|im_start|>", "<end_of_utterance>", "<fake_token_around_image>", "<image>", "<global-img>", "<row_1_col_1>",
    "<row_1_col_2>", "<row_2_col_1>")])
settings = dict(size=dict(longest_edge=150), max_image_size=dict(longest_edge=56))


def text(s):
    return {"type": "text", "text": s}


def prompts(p):
    image = {"type": "image"}
    for messages, sizes in (
            ([{"role": "user", "content": [image, text("Find x.")]}], [(100, 40)]),
            ([{"role": "system", "content": [text("Be short.")]}, {"role": "user", "content": [text("\n"), image, text("\nor"), image]}],
             [(30, 90), (8, 8)]),
            ([{"role": "user", "content": [image, image]}, {"role": "assistant", "content": [text("Both.")]},
              {"role": "user", "content": [text("Why?")]}], [(300, 50), (50, 300)])):
        shown = [Image.new("RGB", s) for s in sizes]
        prompt = p.apply_chat_template(messages, add_generation_prompt=True)
        ids = p(text=[prompt], images=[shown])["input_ids"][0]
        yield {"messages": messages, "images": sizes, "text": prompt, "ids": [int(i) for i in ids]}


fast = PreTrainedTokenizerFast(tokenizer_object=tok, eos_token="<end_of_utterance>", bos_token="<|im_start|>",
                               image_token="<image>", fake_image_token="<fake_token_around_image>",
                               global_image_token="<global-img>")
smol = SmolVLMProcessor(SmolVLMImageProcessor(**settings), fast, SmolVLMVideoProcessor(), image_seq_len=4, chat_template=TEMPLATE)
other = Idefics3Processor(Idefics3ImageProcessor(**settings), fast, image_seq_len=4, chat_template=TEMPLATE)
got = list(prompts(smol))
assert got == list(prompts(other))
print(json.dumps({"template": TEMPLATE, "tokenizer": json.loads(tok.to_str()), "prompts": got}))
