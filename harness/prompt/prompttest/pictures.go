package prompttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/train/checkpoint"
	"exp/train/model"
)

// pictureTemplate writes content parts as Qwen2.5-VL's template does.
const pictureTemplate = "{% for m in messages %}<|im_start|>{{ m.role }}\n" +
	"{% if m.content is string %}{{ m.content }}{% else %}{% for c in m.content %}" +
	"{% if c.type == 'image' %}" + picturePlace + "{% elif 'text' in c %}{{ c.text }}{% endif %}" +
	"{% endfor %}{% endif %}" +
	"<|im_end|>\n{% endfor %}" +
	"{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"

// picturePlace is what the template writes for an image.
const picturePlace = "<s><pad></s>"

// PictureConfig is a Qwen2.5-VL of toy size for PictureFolder, whose <pad> stands for images.
const PictureConfig = `{"architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl",
 "image_token_id": 260, "vision_start_token_id": 256, "vision_end_token_id": 257, "tie_word_embeddings": false,
 "vocab_size": 264, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
 "num_key_value_heads": 1, "rms_norm_eps": 1e-6, "max_position_embeddings": 256, "rope_theta": 10000.0,
 "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}, "hidden_act": "silu",
 "vision_config": {"model_type": "qwen2_5_vl", "depth": 2, "hidden_size": 16, "intermediate_size": 24, "num_heads": 2,
  "in_channels": 3, "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 16,
  "out_hidden_size": 32, "fullatt_block_indexes": [1], "hidden_act": "silu"}}`

// OtherPictureConfigs are a Qwen2-VL and a Qwen3-VL of the same size.
func OtherPictureConfigs() []string {
	return []string{`{"architectures": ["Qwen2VLForConditionalGeneration"], "model_type": "qwen2_vl",
 "image_token_id": 260, "tie_word_embeddings": true, "vocab_size": 264, "hidden_size": 32, "intermediate_size": 48,
 "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-6,
 "max_position_embeddings": 256, "rope_theta": 10000.0, "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]},
 "vision_config": {"depth": 2, "embed_dim": 16, "hidden_size": 32, "mlp_ratio": 2, "num_heads": 2, "in_channels": 3,
  "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2, "hidden_act": "quick_gelu"}}`,
		`{"architectures": ["Qwen3VLForConditionalGeneration"], "model_type": "qwen3_vl", "image_token_id": 260,
 "tie_word_embeddings": false, "text_config": {"model_type": "qwen3_vl_text", "vocab_size": 264, "hidden_size": 32,
  "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
  "rms_norm_eps": 1e-6, "max_position_embeddings": 256, "rope_theta": 10000.0, "hidden_act": "silu",
  "rope_scaling": {"rope_type": "default", "mrope_section": [4, 2, 2], "mrope_interleaved": true}},
 "vision_config": {"depth": 3, "hidden_size": 16, "intermediate_size": 24, "num_heads": 2, "in_channels": 3,
  "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 32, "num_position_embeddings": 16,
  "deepstack_visual_indexes": [0, 2], "hidden_act": "gelu_pytorch_tanh"}}`}
}

// PictureProcessor reads 8×8 pixels as a token.
const PictureProcessor = `{"image_processor_type": "Qwen2VLImageProcessor", "patch_size": 4, "merge_size": 2,
 "temporal_patch_size": 2, "min_pixels": 64, "max_pixels": 4096, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
 "rescale_factor": 0.00392156862745098, "resample": 3, "do_resize": true, "do_rescale": true, "do_normalize": true}`

// TiledPictureConfig is an InternVL of toy size for PictureFolder.
const TiledPictureConfig = `{"architectures": ["InternVLForConditionalGeneration"], "model_type": "internvl",
 "image_token_id": 260, "downsample_ratio": 0.5, "image_seq_length": 4, "projector_hidden_act": "gelu",
 "tie_word_embeddings": false, "text_config": {"model_type": "qwen2", "vocab_size": 264, "hidden_size": 32,
  "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-6,
  "max_position_embeddings": 256, "rope_theta": 10000.0, "hidden_act": "silu"},
 "vision_config": {"model_type": "internvl_vision", "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
  "num_attention_heads": 2, "attention_bias": true, "image_size": [16, 16], "patch_size": [4, 4], "num_channels": 3,
  "hidden_act": "gelu", "norm_type": "layer_norm", "layer_norm_eps": 1e-6, "use_mean_pooling": true}}`

// tiledProcessor reads up to three tiles of 16×16 pixels as four tokens each.
const tiledProcessor = `{"image_processor_type": "GotOcr2ImageProcessorFast", "crop_to_patches": false, "min_patches": 1,
 "max_patches": 2, "size": {"height": 16, "width": 16}, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}`

// SplitPictureConfig is a SmolVLM of toy size for PictureFolder.
const SplitPictureConfig = `{"architectures": ["SmolVLMForConditionalGeneration"], "model_type": "smolvlm",
 "image_token_id": 260, "scale_factor": 2, "tie_word_embeddings": false, "text_config": {"model_type": "llama",
  "vocab_size": 264, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
  "num_key_value_heads": 1, "rms_norm_eps": 1e-5, "max_position_embeddings": 256, "rope_theta": 100000},
 "vision_config": {"model_type": "smolvlm_vision", "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
  "num_attention_heads": 2, "image_size": 12, "patch_size": 5}}`

// splitProcessor reads an image as up to 2×2 tiles of 12×12 pixels and the whole, a token each.
const splitProcessor = `{"image_processor_type": "SmolVLMImageProcessor", "max_image_size": {"longest_edge": 12},
 "size": {"longest_edge": 24}, "resample": 1, "do_image_splitting": true}`

// splitTemplate writes parts of contents alone, as SmolVLM's does.
const splitTemplate = "<|im_start|>{% for m in messages %}{{ m.role | capitalize }}" +
	"{% if m.content[0]['type'] == 'image' %}:{% else %}: {% endif %}{% for c in m.content %}" +
	"{% if c['type'] == 'image' %}<pad>{% elif c['type'] == 'text' %}{{ c['text'] }}{% endif %}{% endfor %}" +
	"<|im_end|>\n{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"

// SquarePictureConfig is a Gemma 3 of toy size for PictureFolder.
const SquarePictureConfig = `{"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
 "image_token_index": 260, "boi_token_index": 256, "eoi_token_index": 257, "mm_tokens_per_image": 4,
 "text_config": {"model_type": "gemma3_text", "vocab_size": 264, "hidden_size": 32, "intermediate_size": 48,
  "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "query_pre_attn_scalar": 16,
  "rms_norm_eps": 1e-6, "max_position_embeddings": 256, "rope_theta": 10000.0, "sliding_window": 8,
  "layer_types": ["sliding_attention", "full_attention"]},
 "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
  "num_attention_heads": 2, "image_size": 16, "patch_size": 4, "vision_use_head": false}}`

// squareProcessor brings an image to 16×16 pixels, four tokens.
const squareProcessor = `{"image_processor_type": "Gemma3ImageProcessor", "size": {"height": 16, "width": 16},
 "do_pan_and_scan": null, "resample": 2, "image_seq_length": 4}`

// PictureFolder is a folder with a random model of text and images.
func PictureFolder(t *testing.T, conf string) string {
	t.Helper()
	files := map[string]string{"config.json": conf, "preprocessor_config.json": PictureProcessor,
		"chat_template.jinja": pictureTemplate, "generation_config.json": `{"eos_token_id": [259], "pad_token_id": 257}`}
	read, text, vision := checkpoint.ReadConfig, "model.", "visual."
	switch conf { // whose image processor writes the tokens around an image
	case TiledPictureConfig:
		files["preprocessor_config.json"] = tiledProcessor
		files["chat_template.jinja"] = strings.Replace(pictureTemplate, picturePlace, "<pad>", 1)
		files["tokenizer_config.json"] = `{"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>",
 "extra_special_tokens": {"start_image_token": "<s>", "end_image_token": "</s>", "context_image_token": "<pad>"},
 "tokenizer_class": "PreTrainedTokenizerFast"}`
		text, vision = "model.language_model.", "model."
	case SquarePictureConfig:
		files["preprocessor_config.json"] = squareProcessor
		files["chat_template.jinja"] = strings.Replace(pictureTemplate, picturePlace, "<s>", 1)
		files["tokenizer_config.json"] = `{"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "pad_token": "<pad>",
 "boi_token": "<s>", "eoi_token": "</s>", "image_token": "<pad>", "tokenizer_class": "PreTrainedTokenizerFast"}`
		text, vision = "model.language_model.", "model."
	case SplitPictureConfig:
		files["preprocessor_config.json"], files["chat_template.jinja"] = splitProcessor, splitTemplate
		files["processor_config.json"] = `{"image_seq_len": 1, "processor_class": "SmolVLMProcessor"}`
		files["tokenizer_config.json"] = `{"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "pad_token": "<pad>",
 "fake_image_token": "<s>", "global_image_token": "</s>", "tokenizer_class": "PreTrainedTokenizerFast"}`
		text, vision = "model.text_model.", "model."
	}
	dir := ModelFolder(t, false, files)
	if checkpoint.ImagesOnRequest(dir) { // Qwen3.5
		read, text, vision = checkpoint.ReadImageConfig, "model.language_model.", "model.visual."
	}
	c, err := read(dir)
	if err != nil {
		t.Fatal(err)
	}
	tower, _, err := checkpoint.ReadVision(dir)
	if err != nil {
		t.Fatal(err)
	}
	shapes := map[string][]int{}
	list, _ := model.Layout(c, model.Heads{LM: true})
	for _, x := range list {
		shapes[strings.Replace(x.Name, "model.", text, 1)] = x.Shape
	}
	for _, x := range tower.Tensors() {
		shapes[vision+x.Name] = x.Shape
	}
	writeWaves(t, filepath.Join(dir, "model.safetensors"), shapes)
	return dir
}

// writeWaves writes tensors of sines; norms are about 1.
func writeWaves(t *testing.T, path string, shapes map[string][]int) {
	t.Helper()
	header, body := map[string]any{}, bytes.Buffer{}
	for k, name := range slices.Sorted(maps.Keys(shapes)) {
		n, start := 1, body.Len()
		for _, d := range shapes[name] {
			n *= d
		}
		for i := range n {
			v := 0.2 * math.Sin(0.37*float64(i)*float64(1+k%3)+float64(k))
			if strings.Contains(name, "norm") || strings.Contains(name, "ln_q") {
				v++
			}
			bits := math.Float32bits(float32(v))
			body.Write([]byte{byte(bits), byte(bits >> 8), byte(bits >> 16), byte(bits >> 24)})
		}
		header[name] = map[string]any{"dtype": "F32", "shape": shapes[name], "data_offsets": []int{start, body.Len()}}
	}
	head, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for i := range 8 {
		out.WriteByte(byte(len(head) >> (8 * i)))
	}
	out.Write(head)
	out.Write(body.Bytes())
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Squares writes rows about bright squares on dark ground next to PNG files, as JSON lines. Every third row has two
// images, and rows 0 and 6 show the same one.
func Squares(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	draw := func(i, width, side int) {
		im := image.NewRGBA(image.Rect(0, 0, width, 24))
		for y := range 24 {
			for x := range width {
				c := color.RGBA{30, 30, uint8(60 + 5*i), 255}
				if x < side && y < side {
					c = color.RGBA{250, 200, 20, 255}
				}
				im.SetRGBA(x, y, c)
			}
		}
		var b bytes.Buffer
		if err := png.Encode(&b, im); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.png", i)), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var rows bytes.Buffer
	for i := range 16 {
		draw(i, 16+8*(i%3), 4+i%6)
		text, images := "<image>Side?", []string{fmt.Sprintf("%d.png", i)}
		if i == 6 {
			text, images[0] = "<image>Again?", "0.png"
		}
		if i%3 == 2 {
			text, images = "<image>or<image>?", append(images, fmt.Sprintf("%d.png", i-1))
		}
		type object map[string]any
		row := object{"data_source": "squares", "prompt": []any{object{"role": "user", "content": text}},
			"images": images, "ability": "math", "extra_info": object{"index": i},
			"reward_model": object{"style": "rule", "ground_truth": fmt.Sprint(4 + i%6)},
			"target":       fmt.Sprintf("\\boxed{%d}", 4+i%6)}
		line, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		rows.Write(append(line, '\n'))
	}
	path := filepath.Join(dir, "squares.jsonl")
	if err := os.WriteFile(path, rows.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
