package checkpoint

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"exp/train/model"
)

// Notes says what a person should know of a model that is computed: the limits that
// its configuration has here and elsewhere has not.
func Notes(c model.Config) []string {
	var list []string
	switch c.Rope.Kind {
	case "dynamic", "longrope":
		list = append(list, fmt.Sprintf("sequences of more than %d tokens are refused: %s rope changes all "+
			"frequencies with the length of the sequence, "+
			"so keys that were cached before would have others, and log-probs would depend on how a sequence "+
			"was sampled", c.MaxPositions, c.Rope.Kind))
	}
	if slices.Contains(c.Windowed, true) && c.Window >= c.MaxPositions {
		list = append(list, fmt.Sprintf("the window of %d positions is never reached: the model has %d", c.Window,
			c.MaxPositions))
	}
	return list
}

// fileNotes says which settings of a folder's config.json have no effect here though
// they have one in other programs, or in transformers while it trains.
func fileNotes(dir string) []string {
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
				"its logits are others", key, factor)
			break
		}
	}
	if r.has("dual_chunk_attention_config") {
		note("dual_chunk_attention_config: not used here, nor by transformers; vLLM computes long sequences by it")
	}
	for _, key := range []string{"attention_dropout", "resid_pdrop", "embd_pdrop"} {
		if p := 0.0; r.maybe(key, &p) && p > 0 {
			note("%s is %g: nothing is dropped here, while transformers drops when it trains", key, p)
		}
	}
	return list
}
