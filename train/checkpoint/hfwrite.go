package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"

	"exp/kernels"
	"exp/train/model"
)

// File names of a Hugging Face folder beside the weights.
const (
	configFile     = "config.json"
	generationFile = "generation_config.json"
)

// architectureOf returns the Hugging Face class that computes c.
func architectureOf(c model.Config) (string, error) {
	switch {
	case c.QKVBias && c.QKNorm:
		return "", errors.New("no Hugging Face architecture has both biases and norms on queries and keys")
	case c.QKVBias:
		return qwen2, nil
	case c.QKNorm:
		return qwen3, nil
	}
	return llama, nil
}

// configJSON returns the config.json of a model whose weights have type dtype and
// whose completions end with one of endIDs. The error says that no Hugging Face
// class computes the model.
func configJSON(c model.Config, dtype kernels.DType, endIDs []int32) ([]byte, error) {
	architecture, err := architectureOf(c)
	if err != nil {
		return nil, err
	}
	v := map[string]any{
		"architectures":           []string{architecture},
		"attention_dropout":       0.0,
		"bos_token_id":            nil, // Llama's default is 1
		"eos_token_id":            tokenIDs(endIDs),
		"head_dim":                c.Head,
		"hidden_act":              "silu",
		"hidden_size":             c.Width,
		"initializer_range":       c.InitStd,
		"intermediate_size":       c.FFN,
		"max_position_embeddings": c.MaxPositions,
		"model_type":              modelType(architecture),
		"num_attention_heads":     c.Heads,
		"num_hidden_layers":       c.Layers,
		"num_key_value_heads":     c.KVHeads,
		"rms_norm_eps":            c.NormEps,
		"rope_scaling":            nil,
		"rope_theta":              c.RopeTheta,
		"tie_word_embeddings":     c.TieEmbeddings,
		"torch_dtype":             map[kernels.DType]string{kernels.F32: "float32", kernels.F64: "float64"}[dtype],
		"use_cache":               true,
		"vocab_size":              c.Vocab,
	}
	switch architecture {
	case llama:
		v["attention_bias"], v["mlp_bias"] = false, false
	case qwen2:
		v["use_sliding_window"], v["sliding_window"] = false, nil
	case qwen3:
		v["attention_bias"], v["use_sliding_window"], v["sliding_window"] = false, false, nil
	}
	return indented(v), nil
}

// generationJSON returns a generation_config.json that says when to stop.
func generationJSON(endIDs []int32) []byte {
	return indented(map[string]any{"eos_token_id": tokenIDs(endIDs)})
}

// tokenIDs is a token id, a list of several, or null.
func tokenIDs(ids []int32) any {
	switch len(ids) {
	case 0:
		return nil
	case 1:
		return ids[0]
	}
	return ids
}

// indented is v as JSON with two spaces of indentation and a final line end. Map
// keys are sorted, so equal values give equal bytes.
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
