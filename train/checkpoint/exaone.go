package checkpoint

import (
	"maps"
	"strings"
)

// EXAONE 3.0 and 3.5, and EXAONE Deep, have Llama's block under names of GPT-2. They are read, and written, as a
// LlamaForCausalLM, as transformers 5 does.

const exaoneClass = "ExaoneForCausalLM"

// asLlama returns the settings of the Llama that an EXAONE 3 is, and r itself for any other model.
func (r *settings) asLlama() *settings {
	if class, kind := r.classNamed(); class != exaoneClass && (class != "" || kind != "exaone") {
		return r
	}
	values := maps.Clone(r.values)
	for own, key := range map[string]string{"num_layers": "num_hidden_layers", "layer_norm_epsilon": "rms_norm_eps",
		"activation_function": "hidden_act"} {
		if v, ok := values[own]; ok {
			values[key] = v
			delete(values, own)
		}
	}
	absent := map[string]any{"rms_norm_eps": 1e-5, "num_key_value_heads": 8, "max_position_embeddings": 4096}
	if !r.inner("rope_parameters").holds("rope_theta") && !r.inner("rope_scaling").holds("rope_theta") {
		absent["rope_theta"] = 5e5
	}
	for key, v := range absent {
		if _, ok := values[key]; !ok {
			values[key] = compact(v)
		}
	}
	delete(values, "auto_map") // it names code of another class
	values["architectures"], values["model_type"] = compact([]string{"LlamaForCausalLM"}), compact("llama")
	return &settings{values: values}
}

// llamaNames renames the tensors of an EXAONE 3.
func (t *Tensors) llamaNames() error {
	if _, ok := t.where["transformer.h.0.mlp.c_fc_1.weight"]; !ok {
		return nil
	}
	names := strings.NewReplacer("transformer.wte.", "model.embed_tokens.", "transformer.h.", "model.layers.",
		"transformer.ln_f.", "model.norm.", ".attn.attention.out_proj.", ".self_attn.o_proj.", ".attn.attention.",
		".self_attn.", ".ln_1.", ".input_layernorm.", ".ln_2.", ".post_attention_layernorm.", ".mlp.c_fc_0.",
		".mlp.gate_proj.", ".mlp.c_fc_1.", ".mlp.up_proj.", ".mlp.c_proj.", ".mlp.down_proj.")
	return t.rename(func(name string) (string, bool) {
		return names.Replace(name), !strings.HasSuffix(name, ".rotary.inv_freq")
	})
}
