package checkpoint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"exp/train/model"
)

// This file has Falcon-H1 (arXiv:2507.22448): in each layer attention and Mamba-2 side by side, with the names of
// Bamba's tensors, and factors in many places.

func falcons() []architecture {
	return []architecture{
		{class: "FalconH1ForCausalLM", kind: "falcon_h1",
			words: "Falcon-H1: attention beside Mamba-2 in each layer, multipliers",
			fixed: model.Config{Names: model.BambaNames, Parallel: true},
			eps:   1e-5, theta: 1e4, positions: 8192, kvHeads: 8,
			mixed: true,
			features: []feature{attentionBias, feedForwardBias, falconLayers, falconMultipliers,
				falconBase},
			write: []writer{outBias, ffnBias, falconValues}},
	}
}

// falconLayers reads the layers. Mamba-2's heads have mamba_d_ssm channels together.
func falconLayers(r *settings, c *model.Config) {
	width := 1024.0
	r.maybe("mamba_d_ssm", &width)
	words := fmt.Sprintf("mamba_d_ssm %g", width)
	if r.null("mamba_d_ssm") {
		width, words = r.expanded(c)
	}
	r.headsOfMamba(c, slices.Repeat([]bool{true}, min(max(c.Layers, 0), maxLayers)), width, words)
	if !r.flag("mamba_use_mlp", true) {
		r.problem("mamba_use_mlp is false: transformers ignores it; all layers have feed-forward blocks")
	}
	c.ScanBias = r.flag("projectors_bias", false)
	switch before := r.flag("mamba_norm_before_gate", true); {
	case !r.flag("mamba_rms_norm", false):
		c.ScanNorm = model.NoScanNorm
	case before:
		c.ScanNorm = model.NormBeforeGate
	}
}

// falconBase refuses a missing base of rotary positions.
func falconBase(r *settings, _ *model.Config) {
	r.needBase("transformers 4 takes 100000, transformers 5 takes 10000")
}

// falconFactor is a key of a number, or of one of several, and where the number goes.
type falconFactor struct {
	key string
	to  []*float64
}

func falconFactors(c *model.Config) []falconFactor {
	x := &c.Multipliers
	one := func(key string, to ...*float64) falconFactor { return falconFactor{key, to} }
	return []falconFactor{one("embedding_multiplier", &c.EmbedScale), one("lm_head_multiplier", &x.Logits),
		one("key_multiplier", &x.Key), one("attention_in_multiplier", &x.AttentionIn),
		one("attention_out_multiplier", &x.AttentionOut), one("ssm_in_multiplier", &x.ScanIn),
		one("ssm_out_multiplier", &x.ScanOut), one("mlp_multipliers", &x.Gate, &x.Down),
		one("ssm_multipliers", &x.Scan[0], &x.Scan[1], &x.Scan[2], &x.Scan[3], &x.Scan[4])}
}

// falconMultipliers reads the factors; 1 is kept as 0. null is 1.
func falconMultipliers(r *settings, c *model.Config) {
	const most = 1e6
	for _, f := range falconFactors(c) {
		list := []float64{1}
		switch {
		case len(f.to) == 1:
			r.maybe(f.key, &list[0])
		case !r.maybe(f.key, &list):
			continue
		}
		if len(list) != len(f.to) {
			r.problem("%s has %d numbers, must have %d", f.key, len(list), len(f.to))
			continue
		}
		for i, v := range list {
			if !(v >= 1/most && v <= most) {
				r.problem("%s is %g, must be from %g to %g", f.key, v, 1/most, float64(most))
			} else if v != 1 {
				*f.to[i] = v
			}
		}
	}
}

// falconValues writes the settings.
func falconValues(v map[string]any, _ architecture, c model.Config) {
	for _, f := range falconFactors(&c) {
		list := make([]any, len(f.to))
		for i, x := range f.to {
			list[i] = number(cmp.Or(*x, 1))
		}
		if v[f.key] = any(list); len(list) == 1 {
			v[f.key] = list[0]
		}
	}
	d := c.Delta
	v["mamba_n_groups"], v["mamba_n_heads"], v["mamba_d_head"] = d.Keys, d.Values, d.ValueDim
	v["mamba_d_ssm"], v["mamba_d_state"], v["mamba_d_conv"] = d.Out(), d.KeyDim, d.Taps
	v["time_step_limit"], v["mamba_conv_bias"], v["mamba_proj_bias"] = timeStepLimit(d), true, false
	v["projectors_bias"], v["mamba_rms_norm"] = c.ScanBias, c.ScanNorm != model.NoScanNorm
	v["mamba_norm_before_gate"] = c.ScanNorm == model.NormBeforeGate
}

// falconWords describes what such layers add to Mamba-2.
func falconWords(c model.Config) string {
	words := "attention beside Mamba-2, whose output has a gate and no norm"
	if c.ScanNorm != model.NoScanNorm {
		words = "attention beside Mamba-2, whose output has a norm " +
			map[model.ScanNorm]string{model.NormBeforeGate: "before", model.NormAfterGate: "after"}[c.ScanNorm] +
			" its gate"
	}
	if c.ScanBias {
		words += "; a bias on that output"
	}
	list := []string{}
	for _, x := range append([]model.Multiplier{{Of: "the embedding", By: c.EmbedScale}}, c.Multipliers.List()...) {
		if x.By != 0 {
			list = append(list, fmt.Sprintf("%s %g", x.Of, x.By))
		}
	}
	if len(list) > 0 {
		words += "; multipliers: " + strings.Join(list, ", ")
	}
	return words
}
