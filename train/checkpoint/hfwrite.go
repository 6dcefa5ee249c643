package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"exp/kernels"
	"exp/train/model"
)

// Names of the non-weight files of a Hugging Face folder.
const (
	configFile     = "config.json"
	generationFile = "generation_config.json"
)

// configJSON returns the config.json of a model whose weights have type dtype and whose
// completions end with one of endIDs. It uses the first class that can express c, and
// returns an error if none can.
func configJSON(c model.Config, dtype DType, endIDs []int32) ([]byte, error) {
	for _, a := range architectures() {
		raw := indented(configValues(a, c, dtype, endIDs))
		if got, err := ParseConfig(configFile, raw); err == nil && reflect.DeepEqual(got, c) {
			return raw, nil
		}
	}
	return nil, errors.New("no Hugging Face class computes this combination of biases, norms, windows and experts")
}

// configValues returns the keys of a config.json of that class for c, without what the
// class cannot express. Rotary positions are written in both spellings: a program that knows only
// one would silently compute with theta 10000.
func configValues(a architecture, c model.Config, dtype DType, endIDs []int32) map[string]any {
	v := map[string]any{
		"architectures":           []string{a.class},
		"attention_dropout":       number(0),
		"bos_token_id":            nil, // Llama's default is 1
		"dtype":                   torchName(dtype),
		"eos_token_id":            tokenIDs(endIDs),
		"head_dim":                c.Head,
		"hidden_act":              gateName(c),
		"hidden_size":             c.Width,
		"initializer_range":       number(c.InitStd),
		"intermediate_size":       c.FFN,
		"max_position_embeddings": c.MaxPositions,
		"model_type":              a.kind,
		"num_attention_heads":     c.Heads,
		"num_hidden_layers":       c.Layers,
		"num_key_value_heads":     c.KVHeads,
		"pad_token_id":            nil, // Phi-3's default is 32000
		"rms_norm_eps":            number(c.NormEps),
		"tie_word_embeddings":     c.TieEmbeddings,
		"torch_dtype":             torchName(dtype),
		"use_cache":               true,
		"vocab_size":              c.Vocab,
	}
	if a.activation != "" {
		v[a.activation] = gateName(c)
	}
	windowValues(v, a, c)
	ropeValues(v, a, c)
	for _, write := range a.write {
		write(v, a, c)
	}
	return v
}

// gemmaValues writes the settings of Gemma 2 and 3.
func gemmaValues(v map[string]any, _ architecture, c model.Config) {
	v["query_pre_attn_scalar"] = finite(inverse(c.QueryScale, func(s float64) float64 { return math.Pow(s, -0.5) },
		1/(c.QueryScale*c.QueryScale)))
	v["attn_logit_softcapping"], v["final_logit_softcapping"] = orNull(c.ScoreCap), orNull(c.LogitCap)
}

// The next functions write which maps have biases.

func outBias(v map[string]any, _ architecture, c model.Config) { v["attention_bias"] = c.OutBias }

func inBias(v map[string]any, _ architecture, c model.Config) { v["attention_bias"] = c.QKVBias }

func ffnBias(v map[string]any, _ architecture, c model.Config) { v["mlp_bias"] = c.FFNBias }

func useBias(v map[string]any, _ architecture, c model.Config) { v["use_bias"] = c.FFNBias }

func qkvBiasValues(v map[string]any, _ architecture, c model.Config) { v["qkv_bias"] = c.QKVBias }

func usesQKNorm(v map[string]any, _ architecture, c model.Config) { v["use_qk_norm"] = c.QKNorm }

func seedValues(v map[string]any, _ architecture, c model.Config) {
	v["attention_bias"], v["attention_out_bias"], v["mlp_bias"] = c.QKVBias, c.OutBias, c.FFNBias
	v["attention_dropout"], v["residual_dropout"] = number(0), number(0) // the class's defaults are 0.1
}

// nanoValues writes nanochat's cap of the logits.
func nanoValues(v map[string]any, _ architecture, c model.Config) {
	v["final_logit_softcapping"] = orNull(c.LogitCap)
}

func windowValues(v map[string]any, a architecture, c model.Config) {
	if a.windows == nil {
		return
	}
	v["sliding_window"] = nil
	switch {
	case c.Windowed != nil:
		v["sliding_window"] = c.Window
	case c.NoRope != nil && a.kind != "smollm3", // EXAONE's layers without a window have no rotary positions
		a.kind == "gemma3_text", a.kind == "gpt_oss": // transformers needs a number even if no layer has a window
		v["sliding_window"] = a.window
	}
	switch a.kind {
	case "qwen2", "qwen3", "qwen2_moe", "qwen3_moe":
		v["use_sliding_window"] = c.Windowed != nil
	case "smollm3":
		v["use_sliding_window"] = c.Windowed != nil
		rotated := slices.Repeat([]int{1}, c.Layers)
		for i := range c.NoRope {
			if c.NoRope[i] {
				rotated[i] = 0
			}
		}
		v["no_rope_layers"] = rotated
	}
	if a.kind == "dots1" {
		v["max_window_layers"] = c.Layers
	}
	if first := slices.Index(c.Windowed, true); first >= 0 && (a.kind == "qwen2" || a.kind == "qwen3") {
		v["max_window_layers"] = first
	}
	if !a.layerTypes {
		return
	}
	types := make([]string, c.Layers)
	for i := range types {
		types[i] = fullScope
		if c.Windowed != nil && c.Windowed[i] {
			types[i] = windowScope
		}
	}
	v["layer_types"] = types
}

// expertValues writes mixtures of experts, or that there are none.
func expertValues(v map[string]any, a architecture, c model.Config) {
	if c.Sparse == nil {
		v["num_experts"] = 0
		return
	}
	olmo := a.kind == "olmoe" || a.kind == "flex_olmo"
	if a.kind == "mixtral" || a.kind == "minimax_m2" || olmo { // experts in every layer
		count := "num_local_experts"
		if olmo {
			count, v["norm_topk_prob"] = "num_experts", c.Experts.Renorm
		}
		if a.kind == "minimax_m2" {
			v["scoring_func"], v["use_routing_bias"], v["use_qk_norm"] = "sigmoid", true, true
			v["rotary_dim"] = cmp.Or(c.Rotary, c.Head)
		}
		v[count], v["num_experts_per_tok"] = c.Experts.Count, c.Experts.Top
		v["intermediate_size"] = c.Experts.FFN
		return
	}
	dense := []int{}
	for i, sparse := range c.Sparse {
		if !sparse {
			dense = append(dense, i)
		}
	}
	v["decoder_sparse_step"], v["mlp_only_layers"] = 1, dense
	v["num_experts"], v["num_experts_per_tok"] = c.Experts.Count, c.Experts.Top
	v["moe_intermediate_size"], v["norm_topk_prob"] = c.Experts.FFN, c.Experts.Renorm
	if c.Experts.Shared > 0 {
		v["shared_expert_intermediate_size"] = c.Experts.Shared
	}
}

// ropeValues writes rotary positions for transformers 4 and 5.
func ropeValues(v map[string]any, a architecture, c model.Config) {
	s := c.Rope
	v["rope_theta"], v["rope_scaling"] = number(c.RopeTheta), nil
	params := map[string]any{"rope_theta": number(c.RopeTheta), "rope_type": "default"}
	if s.Kind != "" {
		scaling := scalingValues(s)
		if (a.ownRope || a.inside) && s.Kind == "longrope" { // transformers 5 looks for it there
			scaling[originalKey] = s.Original
		}
		for key, value := range scaling {
			params[key] = value
		}
		params["rope_type"] = s.Kind
		scaling["type"] = s.Kind
		if a.kind != "phi3" { // Phi-3 allows only three keys
			scaling["rope_type"] = s.Kind
		}
		v["rope_scaling"] = scaling
		if a.latent && c.QueryScale > 0 {
			for key, value := range mscales(c) {
				scaling[key], params[key] = value, value
			}
		}
		// Without this key, the positions before scaling are the model's.
		if s.Kind == "yarn" && s.Original == c.MaxPositions && s.Factor > 1 && s.QueryBeta == 0 {
			delete(scaling, originalKey)
			delete(params, originalKey)
		}
	}
	if s.QueryBeta > 0 {
		v["max_position_embeddings"] = int(math.Round(s.Factor * float64(s.Original)))
	}
	if s.Kind == "longrope" {
		v["original_max_position_embeddings"] = s.Original
		v["max_position_embeddings"] = int(math.Round(s.Factor * float64(s.Original)))
	}
	if a.partial {
		part := 1.0
		if c.Rotary > 0 {
			part = inverse(float64(c.Rotary), func(f float64) float64 { return math.Floor(f * float64(c.Head)) },
				float64(c.Rotary)/float64(c.Head))
		}
		v["partial_rotary_factor"], params["partial_rotary_factor"] = number(part), number(part)
	}
	if head := float64(c.Global.Head); s.Kind == "proportional" {
		params["partial_rotary_factor"] = number(inverse(float64(s.Turned), func(f float64) float64 {
			return 2 * math.Floor(math.Floor(f*head)/2)
		}, float64(s.Turned)/head))
	}
	v["rope_parameters"] = params
	if a.ownRope {
		local := c.LocalTheta
		switch {
		case a.kind == "gemma3_text":
			if local == 0 {
				local = 1e4
			}
			v["rope_local_base_freq"] = number(local)
		case local == 0:
			local = c.RopeTheta
		}
		v["rope_parameters"] = map[string]any{fullScope: params,
			windowScope: map[string]any{"rope_theta": number(local), "rope_type": "default"}}
	}
}

func scalingValues(s model.RopeScaling) map[string]any {
	v := map[string]any{}
	switch s.Kind {
	case "linear", "dynamic":
		v["factor"] = number(s.Factor)
	case "proportional":
		if s.Factor != 1 {
			v["factor"] = number(s.Factor)
		}
	case "llama3":
		v["factor"], v["low_freq_factor"], v["high_freq_factor"] = number(s.Factor), number(s.LowFactor),
			number(s.HighFactor)
		v["original_max_position_embeddings"] = s.Original
	case "yarn":
		v["factor"], v["beta_fast"], v["beta_slow"] = number(s.Factor), number(s.BetaFast), number(s.BetaSlow)
		v["original_max_position_embeddings"], v["attention_factor"] = s.Original, number(s.Attention)
		if s.Exact {
			v["truncate"] = false
		}
		if s.QueryBeta > 0 {
			v["llama_4_scaling_beta"] = number(s.QueryBeta)
		}
	case "longrope":
		v["short_factor"], v["long_factor"] = numbers(s.Short), numbers(s.Long)
		usual := 1.0
		if s.Factor > 1 && s.Original > 1 {
			usual = math.Sqrt(1 + math.Log(s.Factor)/math.Log(float64(s.Original)))
		}
		if s.Attention != usual {
			v["attention_factor"] = number(s.Attention)
		}
	}
	return v
}

// inverse returns an x near guess with f(x) = y, preferring whole numbers.
func inverse(y float64, f func(float64) float64, guess float64) float64 {
	if whole := math.Round(guess); f(whole) == y {
		return whole
	}
	lo, hi := guess, guess
	for range 8 {
		if f(lo) == y {
			return lo
		}
		if f(hi) == y {
			return hi
		}
		lo, hi = math.Nextafter(lo, math.Inf(-1)), math.Nextafter(hi, math.Inf(1))
	}
	return guess
}

// number returns a float as Python writes it, with a decimal point, because transformers 5
// refuses an integer where a class wants a float. A number that JSON cannot express becomes
// null, which shows when the file is read again.
func number(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	text := compact(f)
	if !bytes.ContainsAny(text, ".e") {
		text = append(text, ".0"...)
	}
	return json.RawMessage(text)
}

// finite returns a number for an integer setting, as an integer if it is one.
func finite(f float64) any {
	if number(f) == nil {
		return nil
	}
	return f
}

func numbers(list []float64) []any {
	out := make([]any, len(list))
	for i, f := range list {
		out[i] = number(f)
	}
	return out
}

// orNull returns the number, or null for 0.
func orNull(f float64) any {
	if f == 0 {
		return nil
	}
	return number(f)
}

func gateName(c model.Config) string {
	if c.Gate == kernels.Clamped { // the class has it whatever the name
		return "silu"
	}
	switch {
	case c.Gate == kernels.ReLU2:
		return relu2
	case c.Gate == kernels.XIELU:
		return xielu
	case c.Gate == kernels.PlainGELU:
		return gelu
	case c.Gate == kernels.PlainGELUTanh && (c.Names == model.GPT2Names || c.Names == model.PhiNames):
		return geluNew
	case c.Gate == kernels.PlainGELUTanh:
		return geluTanh
	}
	for _, name := range []string{"silu", geluTanh} {
		if gates()[name] == c.Gate {
			return name
		}
	}
	return fmt.Sprint(c.Gate)
}

// torchName returns config.json's name of a number type.
func torchName(t DType) string {
	return map[DType]string{F32: "float32", F64: "float64", BF16: "bfloat16", F16: "float16"}[t]
}

// generationJSON returns a generation_config.json that says when to stop.
func generationJSON(endIDs []int32) []byte {
	return indented(map[string]any{"eos_token_id": tokenIDs(endIDs)})
}

// tokenIDs is one token id, a list, or null.
func tokenIDs(ids []int32) any {
	switch len(ids) {
	case 0:
		return nil
	case 1:
		return ids[0]
	}
	return ids
}

// indented returns v as JSON with two-space indentation and a final newline. Map keys are
// sorted, so equal values give equal bytes.
func indented(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		panic("checkpoint: JSON of a plain value: " + err.Error())
	}
	return b.Bytes()
}
