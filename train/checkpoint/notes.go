package checkpoint

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"exp/train/model"
)

// Notes returns notes for people on a supported model: limits that its configuration has
// here but not elsewhere.
func Notes(c model.Config) []string {
	var list []string
	switch c.Rope.Kind {
	case "dynamic", "longrope":
		list = append(list, fmt.Sprintf("sequences longer than %d tokens are refused: %s rope changes all "+
			"frequencies with the length of the sequence, "+
			"so cached keys would be stale, and log-probs would depend on how a sequence "+
			"was sampled", c.MaxPositions, c.Rope.Kind))
	}
	if c.Rope.QueryBeta > 0 {
		list = append(list, fmt.Sprintf("sequences longer than %d tokens are refused: from there on the model "+
			"multiplies queries by a factor that grows with their position (llama_4_scaling_beta), which is not "+
			"supported", c.MaxPositions))
	}
	if slices.Contains(c.Windowed, true) && c.Window >= c.MaxPositions {
		list = append(list, fmt.Sprintf("the window of %d positions has no effect: the model has %d", c.Window,
			c.MaxPositions))
	}
	return list
}

// fileNotes returns notes on settings of a folder's config.json that have no effect here
// but do in other programs, or in transformers during training; images says that images are read.
func fileNotes(dir string, images bool) []string {
	r := settings{}
	raw, err := readSmall(filepath.Join(dir, configFile), maxConfig)
	if err != nil || json.Unmarshal(raw, &r.values) != nil {
		return nil
	}
	var list []string
	note := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for _, key := range []string{"rope_scaling", "rope_parameters"} {
		in := r.inner(key)
		if factor := 1.0; in != nil && in.maybe("attn_factor", &factor) && factor != 1 {
			note("%s: attn_factor is %g: not used here, nor by transformers; vLLM multiplies cos and sin by it, so "+
				"its logits differ", key, factor)
			break
		}
	}
	if _, kind := r.classNamed(); kind == "gemma" {
		if name := ""; r.maybe("hidden_act", &name) && name == "gelu" {
			note("hidden_act is gelu: %s here and in transformers 5; transformers 4 computes the exact function",
				geluTanh)
		}
	}
	list = append(append(append(list, r.partNotes(images)...), r.nextTokenNote()...), r.sparseNote()...)
	if r.mxfp4() {
		note("the experts' weights are MXFP4 in the files: here they are BF16 with the same values, and written so")
	}
	if _, _, ok := r.fp8(); ok {
		note("weights are FP8 in the files: here they are BF16, multiplied by their scales and rounded as " +
			"transformers does, and written so")
	}
	list = append(list, r.computedNotes()...)
	if q, why := r.quantizer(); q != nil && why == "" {
		list = append(list, q.notes()...)
	}
	if r.has("dual_chunk_attention_config") {
		note("dual_chunk_attention_config: not used here, nor by transformers; vLLM uses it for long sequences")
	}
	if noise := 0.0; r.maybe("router_jitter_noise", &noise) && noise > 0 {
		note("router_jitter_noise is %g: no noise here, while transformers applies it in training", noise)
	}
	for _, key := range []string{"attention_dropout", "residual_dropout", "resid_pdrop", "embd_pdrop"} {
		if p := 0.0; r.maybe(key, &p) && p > 0 {
			note("%s is %g: no dropout here, while transformers applies it in training", key, p)
		}
	}
	return list
}
