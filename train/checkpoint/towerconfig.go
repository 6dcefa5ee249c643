package checkpoint

import (
	"math"
	"slices"

	"exp/train/model"
	"exp/train/vision"
)

// This file reads the settings of vision towers, and of how language models place their features.

// imageSettings reads which rotary pairs turn by time, height and width.
func (r *settings) imageSettings(x imageClass) (s model.ImageSettings) {
	text := r.inner("text_config")
	if text == nil {
		text = r // settings of transformers 4 lie next to vision_config
	}
	three := x.tower == vision.Qwen3VL // Qwen3.5, too
	switch x.tower {
	case vision.InternVL, vision.Pixtral, vision.Gemma3:
		return model.ImageSettings{Flat: true}
	case vision.Idefics3:
		return model.ImageSettings{Flat: true, Module: textModule}
	}
	var list []int
	for _, key := range []string{"rope_scaling", "rope_parameters"} {
		in := text.inner(key)
		if in == nil {
			continue
		}
		if kind := in.kind(); kind != "default" && kind != "mrope" {
			r.problem("%s: rope type %q is not supported with images; only default and mrope are", key, kind)
		}
		var own []int
		if in.maybe("mrope_section", &own); own != nil && list != nil && !slices.Equal(own, list) {
			r.problem("mrope_section is %v in rope_scaling and %v in rope_parameters: remove one of them", list, own)
		}
		if own != nil {
			list = own
		}
		if v := three; in.maybe("mrope_interleaved", &v) && v != three {
			r.problem("%s: mrope_interleaved is %v: transformers ignores that in this class", key, v)
		}
		r.take(key, in)
	}
	switch { // transformers' defaults
	case list == nil && x.asked:
		list = []int{11, 11, 10}
	case list == nil && three:
		list = []int{24, 20, 20}
	case list == nil && x.tower == vision.GLM4V:
		list = []int{8, 12, 12}
	}
	if len(list) != 3 {
		r.problem("mrope_section is %v: positions of images need three numbers of rotary pairs", list)
		return s
	}
	return model.ImageSettings{Sections: [3]int(list), Interleaved: three}
}

// tower reads vision_config. Missing settings have transformers' defaults for the class.
func (r *settings) tower(x imageClass) (c vision.Config) {
	in := r.inner("vision_config")
	if in == nil {
		r.problem("vision_config is missing")
		return c
	}
	switch x.tower {
	case vision.GLM4V:
		c = in.glmTower()
	case vision.InternVL:
		c = in.internTower(r)
	case vision.Idefics3:
		c = in.ideficsTower(r)
	case vision.Pixtral:
		c = in.pixtralTower(r)
	case vision.Gemma3:
		c = in.gemmaTower(r)
	default:
		c = in.qwenTower(x)
	}
	in.boundTower(c)
	r.take("vision_config", in)
	return c
}

// qwenTower reads the vision_config of Qwen's classes.
func (r *settings) qwenTower(x imageClass) vision.Config {
	c := vision.Config{Kind: x.tower, Layers: 32, Width: 1280, Heads: 16, Activation: vision.QuickGELU, Channels: 3,
		Patch: 14, Frames: 2, Merge: 2, Out: 3584}
	switch x.tower {
	case vision.Qwen2VL:
		ratio := 4
		r.get("embed_dim", &c.Width)
		r.get("hidden_size", &c.Out)
		r.get("mlp_ratio", &ratio)
		c.FFN = min(max(c.Width, 0), maxFFN+1) * min(max(ratio, 0), 1<<10)
	case vision.Qwen25VL:
		c.Width, c.FFN, c.Activation, c.Full = 3584, 3420, vision.SiLU, []int{7, 15, 23, 31}
		window := 112
		r.get("window_size", &window)
		r.get("fullatt_block_indexes", &c.Full)
		r.wide(&c)
		r.get("patch_size", &c.Patch)
		r.get("spatial_merge_size", &c.Merge)
		if c.Window = window / max(c.Merge, 1) / max(c.Patch, 1); c.Window < 1 {
			r.problem("window_size is %d: a window holds no token of %d·%d pixels", window, c.Merge, c.Patch)
		}
	case vision.Qwen3VL:
		c.Layers, c.Width, c.FFN, c.Activation, c.Patch = 27, 1152, 4304, vision.GELUTanh, 16
		positions := 2304
		c.Deep = []int{8, 16, 24}
		r.get("num_position_embeddings", &positions)
		r.get("deepstack_visual_indexes", &c.Deep)
		if x.asked {
			if r.has("deepstack_visual_indexes") && len(c.Deep) > 0 {
				r.problem("deepstack_visual_indexes is %v: transformers ignores that in this class", c.Deep)
			}
			c.Deep = nil
		}
		r.wide(&c)
		if c.Side = int(math.Sqrt(float64(positions))); c.Side < 1 || c.Side*c.Side != positions {
			r.problem("num_position_embeddings is %d, no square number", positions)
		}
	}
	r.counts(&c)
	return c
}

// counts reads what the towers of Qwen and GLM have under the same keys.
func (r *settings) counts(c *vision.Config) {
	r.get("depth", &c.Layers)
	r.get("num_heads", &c.Heads)
	r.get("hidden_act", &c.Activation)
	r.get("in_channels", &c.Channels)
	r.get("patch_size", &c.Patch)
	r.get("temporal_patch_size", &c.Frames)
	r.get("spatial_merge_size", &c.Merge)
}

// glmTower reads the vision_config of GLM-4.1V's classes. Feed-forward blocks are as wide as a token's features.
func (r *settings) glmTower() vision.Config {
	c := vision.Config{Kind: vision.GLM4V, Layers: 24, Width: 1536, Heads: 12, Activation: vision.SiLU, Channels: 3,
		Patch: 14, Frames: 2, Merge: 2, Out: 4096, Inner: 13696, Eps: 1e-5}
	image := 336
	r.get("hidden_size", &c.Width)
	r.get("intermediate_size", &c.Inner)
	r.get("out_hidden_size", &c.Out)
	r.get("rms_norm_eps", &c.Eps)
	r.get("image_size", &image)
	r.counts(&c)
	c.FFN, c.Bias = c.Out, r.flag("attention_bias", false)
	if c.Side = image / max(c.Patch, 1); c.Side < 1 {
		r.problem("image_size is %d: it holds no patch of %d pixels", image, c.Patch)
	}
	return c
}

// internTower reads the vision_config of InternVL. whole is the file, which has some of the tower's settings.
func (r *settings) internTower(whole *settings) vision.Config {
	c := vision.Config{Kind: vision.InternVL, Layers: 24, Width: 1024, Heads: 16, FFN: 4096, Activation: vision.GELU,
		Channels: 3, Patch: 14, Frames: 1, Eps: 1e-6}
	norm, image := "layer_norm", 448
	r.encoder(&c)
	r.square("image_size", &image)
	r.square("patch_size", &c.Patch)
	if r.get("norm_type", &norm); norm != "layer_norm" && norm != "rms_norm" {
		r.problem("norm_type is %q: only layer_norm and rms_norm are supported", norm)
	}
	c.RMS, c.QKNorm = norm == "rms_norm", r.flag("use_qk_norm", false)
	c.Bias, c.Last = r.flag("attention_bias", false), !r.flag("use_mean_pooling", true)
	if c.Side = image / max(c.Patch, 1); c.Side*c.Patch != image {
		r.problem("image_size is %d, not a multiple of patch_size, %d", image, c.Patch)
	}
	for key, usual := range map[string]bool{"use_mask_token": false, "use_absolute_position_embeddings": true} {
		if r.flag(key, usual) != usual {
			r.problem("%s is %v: that is not supported", key, !usual)
		}
	}
	whole.projector(&c)
	return c
}

// encoder reads what the towers of InternVL and Idefics3 have under the same keys.
func (r *settings) encoder(c *vision.Config) {
	r.get("hidden_size", &c.Width)
	r.get("num_hidden_layers", &c.Layers)
	r.get("num_attention_heads", &c.Heads)
	r.get("intermediate_size", &c.FFN)
	r.get("hidden_act", &c.Activation)
	r.get("num_channels", &c.Channels)
	r.get("layer_norm_eps", &c.Eps)
}

// ideficsTower reads the vision_config of Idefics3 and SmolVLM. whole is the file, which says how many patches a token
// has. A tile whose sides are not whole patches loses its last pixels, as in transformers.
func (r *settings) ideficsTower(whole *settings) vision.Config {
	c := vision.Config{Kind: vision.Idefics3, Layers: 12, Width: 1152, Heads: 16, FFN: 3072,
		Activation: vision.GELUTanh, Channels: 3, Patch: 32, Frames: 1, Merge: 2, Eps: 1e-6}
	image := 224
	r.encoder(&c)
	r.get("image_size", &image)
	r.get("patch_size", &c.Patch)
	whole.get("scale_factor", &c.Merge)
	if c.Side = image / max(c.Patch, 1); c.Merge < 1 || c.Side < 1 || c.Side%c.Merge != 0 {
		r.problem("image_size is %d, patch_size %d: a tile has %d patches a side, no multiple of scale_factor, %d",
			image, c.Patch, c.Side, c.Merge)
		c.Side, c.Merge = 1, 1
	}
	if text := whole.inner("text_config"); text == nil || !text.maybe("hidden_size", &c.Out) {
		c.Out = llamaWidth
	}
	return c
}

// pixtralTower reads the vision_config of Mistral 3. whole is the file, which has the settings of the merger.
func (r *settings) pixtralTower(whole *settings) vision.Config {
	c := vision.Config{Kind: vision.Pixtral, Layers: 24, Width: 1024, Heads: 16, FFN: 4096, Activation: vision.GELU,
		Channels: 3, Patch: 16, Frames: 1, Merge: 2, Eps: 1e-5, MergerEps: 1e-6}
	r.encoder(&c)
	r.get("patch_size", &c.Patch)
	c.Eps = 1e-5 // whatever layer_norm_eps says
	if c.Activation != vision.SiLU {
		r.problem("hidden_act is %q in vision_config (transformers' default is gelu): only silu is supported",
			c.Activation)
	}
	kind, theta, layer, act := "pixtral", 1e4, -1, vision.GELU
	r.maybe("model_type", &kind)
	r.maybe("rope_theta", &theta)
	whole.get("spatial_merge_size", &c.Merge)
	whole.get("vision_feature_layer", &layer)
	whole.get("projector_hidden_act", &act)
	if kind != "pixtral" || theta != 1e4 {
		r.problem("vision_config: model_type %q and rope_theta %g: only pixtral with 10000 is supported", kind, theta)
	}
	if bias := whole.flag("multimodal_projector_bias", false); layer != -1 || act != vision.GELU || bias {
		r.problem("vision_feature_layer %d, projector_hidden_act %q, multimodal_projector_bias %v: only -1, gelu and "+
			"false are supported", layer, act, bias)
	}
	text := whole.inner("text_config")
	if text == nil || !text.maybe("hidden_size", &c.Out) {
		r.problem("text_config: hidden_size is missing")
		c.Out = 1
		return c
	}
	text.maybe("rms_norm_eps", &c.MergerEps)
	return c
}

// gemmaTower reads the vision_config of Gemma 3, a SigLIP's. whole is the file, which says how many tokens an image
// has.
func (r *settings) gemmaTower(whole *settings) vision.Config {
	c := vision.Config{Kind: vision.Gemma3, Layers: 12, Width: 768, Heads: 12, FFN: 3072, Activation: vision.GELUTanh,
		Channels: 3, Patch: 16, Frames: 1, Eps: 1e-6, Out: 2304}
	image, tokens := 224, 256
	r.encoder(&c)
	r.get("image_size", &image)
	r.get("patch_size", &c.Patch)
	whole.get("mm_tokens_per_image", &tokens)
	whole.inner("text_config").orEmpty().maybe("hidden_size", &c.Out)
	side := int(math.Sqrt(float64(max(tokens, 1))))
	if c.Side = image / max(c.Patch, 1); c.Side*c.Patch != image || side*side != tokens || c.Side%side != 0 {
		r.problem("image_size is %d, patch_size %d and mm_tokens_per_image %d: the sides of an image are not whole "+
			"patches, or not so many whole tokens", image, c.Patch, tokens)
		c.Side, side = 1, 1
	}
	c.Merge = c.Side / side
	return c
}

// projector reads what InternVL's config.json has outside vision_config about the tower.
func (r *settings) projector(c *vision.Config) {
	ratio, layer, part, act := 0.5, -1, "default", vision.GELU
	r.get("downsample_ratio", &ratio)
	r.get("vision_feature_layer", &layer)
	r.get("vision_feature_select_strategy", &part)
	r.get("projector_hidden_act", &act)
	if c.Merge = int(1 / ratio); !(ratio > 0) || float64(c.Merge)*ratio != 1 || c.Merge > 1<<3 {
		r.problem("downsample_ratio is %g, not 1/2 or another unit fraction from 1/8 on", ratio)
		c.Merge = 1
	}
	if layer != -1 || part != "default" || act != vision.GELU {
		r.problem("vision_feature_layer %d, vision_feature_select_strategy %q, projector_hidden_act %q: only -1, "+
			"default and gelu are supported", layer, part, act)
	}
	tokens := c.Side / c.Merge * (c.Side / c.Merge)
	if n := tokens; r.maybe("image_seq_length", &n) && n != tokens {
		r.problem("image_seq_length is %d, but a tile of %d·%d patches has %d tokens", n, c.Side, c.Side, tokens)
	}
	if text := r.inner("text_config"); text == nil || !text.maybe("hidden_size", &c.Out) {
		r.problem("text_config: hidden_size is missing")
		c.Out = 1
	}
}

// square reads a number, or two equal ones.
func (r *settings) square(key string, v *int) {
	var both []int
	if raw := r.values[key]; len(raw) == 0 || raw[0] != '[' {
		r.get(key, v)
	} else if r.get(key, &both); len(both) != 2 || both[0] != both[1] {
		r.problem("%s is %s, not a number or two equal ones", key, shortened(raw))
	} else {
		*v = both[0]
	}
}

// wide reads the widths of Qwen2.5-VL's and Qwen3-VL's towers.
func (r *settings) wide(c *vision.Config) {
	r.get("hidden_size", &c.Width)
	r.get("intermediate_size", &c.FFN)
	r.get("out_hidden_size", &c.Out)
}

// boundTower limits sizes so that their products do not overflow, and refuses what a tower does not compute.
func (r *settings) boundTower(c vision.Config) {
	for _, d := range []struct {
		key        string
		got, limit int
	}{
		{"depth", c.Layers, maxLayers}, {"the width", c.Width, 1 << 16}, {"num_heads", c.Heads, maxHeads},
		{"the feed-forward width", c.FFN, maxFFN}, {"the width of a token's features", c.Out, maxFFN},
		{"patch_size", c.Patch, 1 << 10}, {"spatial_merge_size", c.Merge, 1 << 3},
		{"temporal_patch_size", c.Frames, 1 << 6}, {"the number of learned positions a side", c.Side, 1 << 12},
		{"intermediate_size", c.Inner, maxFFN},
	} {
		if d.got > d.limit || d.got < 0 {
			r.problem("%s is %d, must be from 1 to %d", d.key, d.got, d.limit)
		}
	}
	if c.Channels != 3 {
		r.problem("in_channels is %d: images have 3", c.Channels)
	}
	if rope := r.inner("rope_parameters"); rope != nil {
		kind, theta := "axial", 1e4
		rope.maybe("rope_type", &kind)
		if rope.maybe("rope_theta", &theta); kind != "axial" || theta != 1e4 {
			r.problem("rope_parameters: type %q and theta %g: only axial with theta 10000 is supported", kind, theta)
		}
		r.take("rope_parameters", rope)
	}
	if r.has(quantization) {
		r.problem("%s: a quantized vision tower is not supported", quantization)
	}
}
