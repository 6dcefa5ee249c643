package checkpoint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"exp/kernels"
	"exp/train/model"
	"exp/train/pyjson"
)

// hybridValues writes the settings of Granite 3 MoE, Granite 4 and Bamba.
func hybridValues(v map[string]any, a architecture, c model.Config) {
	d := c.Delta
	types := make([]string, c.Layers)
	for i := range types {
		types[i] = "attention"
		if c.Linear != nil && c.Linear[i] {
			types[i] = "mamba"
		}
	}
	switch a.kind {
	case "granitemoe", "granitemoeshared":
		v["attention_bias"] = c.OutBias
		v["num_local_experts"], v["num_experts_per_tok"] = c.Experts.Count, c.Experts.Top
		if v["intermediate_size"] = c.Experts.FFN; a.kind == "granitemoeshared" {
			v["shared_intermediate_size"] = c.Experts.Shared
		}
		multiplierValues(v, a, c)
		return
	case "granitemoehybrid":
		v["layer_types"], v["shared_intermediate_size"] = types, c.FFN
		v["num_local_experts"], v["intermediate_size"] = c.Experts.Count, c.FFN
		if c.Experts.Count > 0 {
			v["num_experts_per_tok"], v["intermediate_size"] = c.Experts.Top, c.Experts.FFN
		}
		v["position_embedding_type"] = "rope"
		if c.NoRope != nil {
			v["position_embedding_type"] = "nope"
		}
		multiplierValues(v, a, c)
	case "bamba":
		attention := []int{}
		for i, t := range types {
			if t == "attention" {
				attention = append(attention, i)
			}
		}
		v["attn_layer_indices"] = attention
	}
	v["attention_bias"] = c.OutBias
	if a.kind == "bamba" {
		v["mlp_bias"] = c.FFNBias
	}
	if c.Linear == nil {
		v["mamba_expand"], v["mamba_n_heads"], v["mamba_d_head"] = 1, 1, c.Width
		return
	}
	v["mamba_n_groups"], v["mamba_n_heads"], v["mamba_d_head"] = d.Keys, d.Values, d.ValueDim
	v["mamba_d_state"], v["mamba_d_conv"], v["time_step_limit"] = d.KeyDim, d.Taps, timeStepLimit(d)
	v["mamba_expand"] = finite(float64(d.Out()) / float64(c.Width))
	v["mamba_conv_bias"], v["mamba_proj_bias"] = true, false
}

// timeStepLimit returns the limits of time steps.
func timeStepLimit(d kernels.DeltaShape) []any {
	if d.High > 0 {
		return []any{number(d.Low), number(d.High)}
	}
	return []any{number(d.Low), json.RawMessage(pyjson.Infinity)}
}

// nemotronValues writes Nemotron-H's.
func nemotronValues(v map[string]any, _ architecture, c model.Config) {
	var pattern strings.Builder
	for l := range c.Layers {
		letter := "*"
		switch {
		case c.Linear != nil && c.Linear[l]:
			letter = "M"
		case c.Sparse != nil && c.Sparse[l]:
			letter = "E"
		case c.NoMixer != nil && c.NoMixer[l]:
			letter = "-"
		}
		pattern.WriteString(letter)
	}
	d := c.Delta
	v["hybrid_override_pattern"], v["layer_norm_epsilon"] = pattern.String(), number(c.NormEps)
	for _, key := range []string{"hidden_act", "rope_theta", "rope_scaling", "rope_parameters"} {
		delete(v, key)
	}
	if c.Linear != nil {
		v["n_groups"], v["mamba_num_heads"], v["mamba_head_dim"] = d.Keys, d.Values, d.ValueDim
		v["ssm_state_size"], v["conv_kernel"], v["time_step_min"] = d.KeyDim, d.Taps, number(d.Low)
	}
	if e := c.Experts; e.Count > 0 {
		v["n_routed_experts"], v["num_experts_per_tok"], v["moe_intermediate_size"] = e.Count, e.Top, e.FFN
		v["moe_shared_expert_intermediate_size"], v["n_shared_experts"] = e.Shared, 1
		v["norm_topk_prob"], v["routed_scaling_factor"] = e.Renorm, number(cmp.Or(e.Scale, 1))
		v["n_group"], v["topk_group"] = max(e.Groups, 1), max(e.TopGroups, 1)
	}
}

// multiplierValues writes Granite's multipliers.
func multiplierValues(v map[string]any, _ architecture, c model.Config) {
	v["embedding_multiplier"] = number(cmp.Or(c.EmbedScale, 1))
	v["residual_multiplier"] = number(cmp.Or(c.ResidualScale, 1))
	v["logits_scaling"], v["attention_multiplier"] = number(cmp.Or(c.LogitDivisor, 1)), number(c.QueryScale)
}

// hybridWords describes layers with Mamba-2 or short convolutions.
func hybridWords(c model.Config) string {
	d := c.Delta
	if d.Conv {
		return fmt.Sprintf("%d of %d layers have a gated short convolution of width %d", countTrue(c.Linear), c.Layers,
			d.Taps)
	}
	return fmt.Sprintf("%d of %d layers have Mamba-2: %d heads of %d, states of %d, %s, "+
		"convolution of width %d", countTrue(c.Linear), c.Layers, d.Values, d.ValueDim, d.KeyDim,
		count(d.Keys, "group"), d.Taps)
}
