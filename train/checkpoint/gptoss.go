package checkpoint

import (
	"encoding/json"
	"slices"

	"exp/kernels"
	"exp/train/model"
)

// sinks is the architecture of gpt-oss (arXiv:2508.10925).
func sinks() architecture {
	return architecture{class: "GptOssForCausalLM", kind: "gpt_oss",
		words: "gpt-oss: attention sinks, every second layer windowed, experts with biases and clamped gates",
		fixed: model.Config{Sinks: true},
		eps:   1e-5, theta: 15e4, positions: 131072, kvHeads: 8, head: 64, vocab: 201088, heads: 64, window: 128,
		experts: true, layerTypes: true, windows: windowEven, mxfp4: true,
		features: []feature{ossBias, ossExperts, ossGate, ossRope},
		write:    []writer{ossValues}}
}

// ossBias is attentionBias, which the class has by default.
func ossBias(r *settings, c *model.Config) {
	bias := r.flag("attention_bias", true)
	c.QKVBias, c.OutBias = bias, bias
}

// ossExperts reads a mixture of experts in every layer, whose width is intermediate_size. The weights of the chosen
// ones are a softmax over their own logits, so they sum to 1.
func ossExperts(r *settings, c *model.Config) {
	e := model.Experts{Count: 128, Top: 4, FFN: c.FFN, Renorm: true, Bias: true}
	r.either("num_local_experts", "num_experts", &e.Count)
	if top := e.Top; !r.has("num_experts_per_tok") && r.maybe("experts_per_token", &top) && top != e.Top {
		r.problem("experts_per_token is %d: transformers reads num_experts_per_tok, and takes %d without it", top,
			e.Top)
	}
	r.everywhere(c, e)
}

// ossGate is the class's own gate, whatever hidden_act says. Other limits than the published models' are refused.
func ossGate(r *settings, c *model.Config) {
	for _, x := range []struct {
		key  string
		want float64
	}{{"swiglu_limit", kernels.GateLimit}, {"swiglu_alpha", kernels.GateSlope}} {
		got := x.want
		if r.get(x.key, &got); got != x.want {
			r.problem("%s is %g: only %g, of the published models, is supported", x.key, got, x.want)
		}
	}
	c.Gate = kernels.Clamped
}

// ossRope gives a file without rotary settings the class's own.
func ossRope(r *settings, _ *model.Config) {
	if _, params := r.values["rope_parameters"]; params || r.has("rope_scaling") {
		return
	}
	if r.null("rope_scaling") {
		r.problem("rope_scaling is null: transformers 4 scales no positions then, transformers 5 as the published " +
			"models do")
		return
	}
	r.values["rope_scaling"] = json.RawMessage(`{"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, ` +
		`"beta_slow": 1.0, "truncate": false, "original_max_position_embeddings": 4096}`)
}

// ossValues writes the settings of the class.
func ossValues(v map[string]any, _ architecture, c model.Config) {
	v["attention_bias"] = c.OutBias
	v["num_local_experts"], v["num_experts_per_tok"] = c.Experts.Count, c.Experts.Top
	v["experts_per_token"], v["intermediate_size"] = c.Experts.Top, c.Experts.FFN
	v["swiglu_limit"], v["swiglu_alpha"] = number(kernels.GateLimit), number(kernels.GateSlope)
}

const quantization = "quantization_config"

// mxfp4 reports whether the file says that the experts' weights are MXFP4.
func (r *settings) mxfp4() bool {
	method := ""
	q := r.inner(quantization)
	return q != nil && q.maybe("quant_method", &method) && method == "mxfp4"
}

// widens reports whether the file's weights are quantized in a way that is read: as floating-point numbers.
func (r *settings) widens() bool {
	_, _, fp8 := r.fp8()
	q, why := r.quantizer()
	return fp8 || r.mxfp4() || q != nil && why == ""
}

// unquantized returns a config.json for widened weights.
func unquantized(raw []byte) []byte {
	r := settings{}
	if json.Unmarshal(raw, &r.values) != nil || !r.widens() {
		return raw
	}
	keys, values, err := members(raw)
	if err != nil {
		return raw
	}
	i := slices.Index(keys, quantization)
	plain, err := joinMembers(slices.Delete(keys, i, i+1), slices.Delete(values, i, i+1))
	if err != nil {
		return raw
	}
	return plain
}
