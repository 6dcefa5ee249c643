package checkpoint

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"exp/train/checkpoint/extent"
)

// This file has the classes that compute what a class of transformers does, under other names. They are read, and
// written, as that class.

// relative is such a class.
type relative struct {
	class, kind string
	as, asKind  string            // what it is read and written as
	keys        map[string]string // its names of settings, and the other class's
	absent      map[string]any    // its defaults where the other class has others, or none
	refuse      func(r *settings) // notes settings that the other class does not have; may be nil

	mark  string            // a part of the names of tensors that no other class has
	names *strings.Replacer // of its names of tensors by the other class's
	drop  string            // the end of names of tensors that hold no weights
	split splitRows         // of queries, keys and values in one tensor
	fused string            // the end of that tensor's name, without weight or bias
}

// splitRows says how many runs of rows a tensor of queries, keys and values has, and how many rows each have in one,
// in a model of so many query and key heads of so many channels.
type splitRows func(heads, keys, head int) (runs int, rows [3]int)

// groups is InternLM2's: a group of query heads, and the key and the value that they share, then the next group.
func groups(heads, keys, head int) (runs int, rows [3]int) {
	return keys, [3]int{heads / keys * head, head, head}
}

// inTurn is Ling's and Sarvam's: all queries, all keys, all values.
func inTurn(heads, keys, head int) (runs int, rows [3]int) {
	return 1, [3]int{heads * head, keys * head, keys * head}
}

// relatives lists them.
func relatives() []relative {
	return append(llamaRelatives(), lings()...)
}

// llamaRelatives have Llama's block.
func llamaRelatives() []relative {
	return []relative{
		// EXAONE 3.0 and 3.5, and EXAONE Deep, have Llama's block under names of GPT-2.
		{class: "ExaoneForCausalLM", kind: "exaone", as: "LlamaForCausalLM", asKind: "llama",
			keys: map[string]string{"num_layers": "num_hidden_layers", "layer_norm_epsilon": "rms_norm_eps",
				"activation_function": "hidden_act"},
			absent: map[string]any{"rms_norm_eps": 1e-5, "num_key_value_heads": 8, "max_position_embeddings": 4096,
				"rope_theta": 5e5},
			mark: ".mlp.c_fc_1.", drop: ".rotary.inv_freq",
			names: strings.NewReplacer("transformer.wte.", "model.embed_tokens.", "transformer.h.", "model.layers.",
				"transformer.ln_f.", "model.norm.", ".attn.attention.out_proj.", ".self_attn.o_proj.",
				".attn.attention.", ".self_attn.", ".ln_1.", ".input_layernorm.", ".ln_2.",
				".post_attention_layernorm.", ".mlp.c_fc_0.", ".mlp.gate_proj.", ".mlp.c_fc_1.", ".mlp.up_proj.",
				".mlp.c_proj.", ".mlp.down_proj.")},
		{class: "InternLM2ForCausalLM", kind: "internlm2", as: "LlamaForCausalLM", asKind: "llama",
			keys:   map[string]string{"bias": "attention_bias"},
			absent: map[string]any{"attention_bias": true},
			mark:   ".attention.wqkv.", drop: ".rotary_emb.inv_freq",
			names: strings.NewReplacer("tok_embeddings.", "embed_tokens.", ".attention.wo.", ".self_attn.o_proj.",
				".attention.wqkv.", ".self_attn.wqkv.", ".attention_norm.", ".input_layernorm.", ".ffn_norm.",
				".post_attention_layernorm.", ".feed_forward.w1.", ".mlp.gate_proj.", ".feed_forward.w3.",
				".mlp.up_proj.", ".feed_forward.w2.", ".mlp.down_proj.", "output.weight", lmHead),
			split: groups, fused: ".self_attn.wqkv"},
	}
}

// lings have the block of GLM-4.5.
func lings() []relative {
	ling := relative{class: "BailingMoeV2ForCausalLM", kind: "bailing_moe_v2", as: "Glm4MoeForCausalLM",
		asKind: "glm4_moe",
		keys: map[string]string{"num_experts": "n_routed_experts", "num_shared_experts": "n_shared_experts",
			"use_qkv_bias": "attention_bias", "score_function": "scoring_func"},
		absent: map[string]any{"attention_bias": false, "first_k_dense_replace": 1, "head_dim": 128,
			"max_position_embeddings": 32768, "moe_intermediate_size": 512, "n_group": 8, "n_routed_experts": 256,
			"n_shared_experts": 1, "num_attention_heads": 16, "num_key_value_heads": 4, "partial_rotary_factor": 1.0,
			"rms_norm_eps": 1e-6, "rope_theta": 6e5, "routed_scaling_factor": 1.0, "topk_group": 4,
			"use_qk_norm": true, "vocab_size": 157184},
		refuse: lingKeys,
		mark:   ".mlp.gate.expert_bias", drop: ".rotary_emb.inv_freq",
		names: strings.NewReplacer("word_embeddings.", "embed_tokens.", ".attention.dense.", ".self_attn.o_proj.",
			".attention.query_key_value.", ".self_attn.query_key_value.", ".attention.query_layernorm.",
			".self_attn.q_norm.", ".attention.key_layernorm.", ".self_attn.k_norm.", ".mlp.gate.expert_bias",
			".mlp.gate.e_score_correction_bias"),
		split: inTurn, fused: ".self_attn.query_key_value"}
	sarvam := ling
	sarvam.class, sarvam.kind = "SarvamMoEForCausalLM", "sarvam_moe"
	sarvam.absent = maps.Clone(ling.absent)
	maps.Copy(sarvam.absent, map[string]any{"head_dim": 64, "max_position_embeddings": 131072,
		"moe_intermediate_size": 1024, "n_group": 1, "n_routed_experts": 128, "num_attention_heads": 64,
		"num_experts_per_tok": 6, "rope_theta": 8e6, "routed_scaling_factor": 2.5, "topk_group": 1,
		"vocab_size": 262144})
	return []relative{ling, sarvam}
}

// lingKeys refuses what the authors' code computes otherwise than GLM-4.5, or ignores.
func lingKeys(r *settings) {
	r.refuseFlags(false, "use_bias", "norm_head", "norm_softmax", "multi_gate")
	r.refuseFlags(true, "norm_topk_prob", "moe_router_enable_expert_bias")
	if top := 0; r.maybe("num_experts_per_tok", &top) && top == 1 {
		r.problem("num_experts_per_tok is 1: at least 2 are supported for this class, whose weights sum to 1 only " +
			"then")
	}
	wide, one := 0, 512
	r.maybe("moe_intermediate_size", &one)
	if r.maybe("moe_shared_expert_intermediate_size", &wide) && wide != one {
		r.problem("moe_shared_expert_intermediate_size is %d, and moe_intermediate_size %d: the authors' code "+
			"ignores the first, other programs do not", wide, one)
	}
}

// relative returns the row for the class of a file.
func (r *settings) relative() (relative, bool) {
	class, kind := r.classNamed()
	for _, x := range relatives() {
		if class == x.class || class == "" && kind == x.kind {
			return x, true
		}
	}
	return relative{}, false
}

// asRelative returns the settings of the class that a relative is read as, and r itself for any other class.
func (r *settings) asRelative() *settings {
	x, ok := r.relative()
	if !ok {
		return r
	}
	if x.refuse != nil {
		x.refuse(r)
	}
	values := maps.Clone(r.values)
	for own, key := range x.keys {
		if v, ok := values[own]; ok {
			values[key] = v
			delete(values, own)
		}
	}
	for key, v := range x.absent {
		inside := r.inner("rope_parameters").holds(key) || r.inner("rope_scaling").holds(key)
		if _, ok := values[key]; !ok && !inside {
			values[key] = compact(v)
		}
	}
	delete(values, "auto_map") // it names code of another class
	values["architectures"], values["model_type"] = compact([]string{x.as}), compact(x.asKind)
	return &settings{values: values, problems: r.problems}
}

// relativeNote says what a relative is written as.
func (r *settings) relativeNote() []string {
	x, ok := r.relative()
	switch {
	case !ok:
		return nil
	case x.asKind == "llama":
		return []string{"the block of this class is Llama's: written weights are a plain LlamaForCausalLM"}
	}
	return []string{"this class computes what transformers' " + x.as + " does: written weights are one"}
}

// relativeNames gives tensors of relatives the names and shapes that the other class has.
func (t *Tensors) relativeNames() error {
	for _, x := range relatives() {
		if !t.some(func(name string) bool { return strings.Contains(name, x.mark) }) {
			continue
		}
		if err := t.rename(func(name string) (string, bool) {
			return x.names.Replace(name), x.drop == "" || !strings.HasSuffix(name, x.drop)
		}); err != nil {
			return err
		}
		if x.split != nil {
			return t.splitHeads(x)
		}
		return nil
	}
	return nil
}

// some reports whether a tensor has such a name.
func (t *Tensors) some(f func(name string) bool) bool {
	for name := range t.where {
		if f(name) {
			return true
		}
	}
	return false
}

// splitHeads replaces tensors of queries, keys and values by three each.
func (t *Tensors) splitHeads(x relative) error {
	var heads, keys, head int
	for _, name := range slices.Sorted(maps.Keys(t.where)) {
		prefix, kind, ok := strings.Cut(name, x.fused+".")
		if !ok {
			continue
		}
		p := t.where[name]
		if heads == 0 {
			var err error
			if heads, keys, head, err = t.headsOf(name); err != nil {
				return err
			}
		}
		runs, rows := x.split(heads, keys, head)
		all := rows[0] + rows[1] + rows[2]
		if len(p.Shape) == 0 || p.Shape[0] != int(runs*all) || p.DType.bits()%8 != 0 || p.Len() == 0 {
			return corrupt(t.path, name, "is %s; by config.json it has %d rows: %d query heads and %d key heads of "+
				"%d channels", p.Tensor, int(runs*all), heads, keys, head)
		}
		delete(t.where, name)
		row, at := p.Bytes()/int64(p.Shape[0]), int64(0)
		for i, part := range []string{"q_proj", "k_proj", "v_proj"} {
			n, from := int64(rows[i])*row, at
			own := p.derived(prefix+".self_attn."+part+"."+kind,
				append([]int{int(runs * rows[i])}, p.Shape[1:]...), func(e extent.Extent) extent.Extent {
					return extent.Strided(e, from, n, extent.Loop{N: int64(runs), Stride: int64(all) * row})
				})
			at += n
			if err := t.put(t.path, own); err != nil {
				return err
			}
		}
	}
	return nil
}

// headsOf reads how many query and key heads the model has, and of how many channels, next to its weights. name is a
// tensor that needs them.
func (t *Tensors) headsOf(name string) (heads, keys, head int, err error) {
	r, err := t.settingsNearby()
	if err == nil {
		in := r.asRelative()
		in.maybe("num_attention_heads", &heads)
		keys = heads
		in.maybe("num_key_value_heads", &keys)
		width := 0
		if in.maybe("hidden_size", &width); heads > 0 {
			head = width / heads
		}
		in.maybe("head_dim", &head)
	}
	if err != nil || heads < 1 || heads > maxHeads || keys < 1 || heads%max(keys, 1) != 0 || head < 1 ||
		head > maxHead {
		return 0, 0, 0, &Error{Op: "read", Path: t.path, Tensor: name,
			Err: errors.New("its rows are in an order of heads, and no config.json says how many there are"),
			Hint: "put the model's config.json, with num_attention_heads, num_key_value_heads and hidden_size, next " +
				"to its weights"}
	}
	return heads, keys, head, nil
}
