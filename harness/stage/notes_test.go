package stage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/harness/config"
)

// The notes of a plan are the limits of the model that inspect shows.
func TestStartNotes(t *testing.T) {
	dir := t.TempDir()
	conf := `{"architectures": ["LlamaForCausalLM"], "vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8,
		"max_position_embeddings": 64, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}`
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	c := &config.Run{Model: config.Model{Init: "pretrained", Base: dir}}
	if list := StartNotes(c); len(list) != 1 || !strings.Contains(list[0], "sequences longer than 64 tokens are refused") {
		t.Errorf("notes %q", list)
	}
	c.Model.Init = "random"
	if list := StartNotes(c); list != nil {
		t.Errorf("a random model has notes: %q", list)
	}
}

// A punishment that rounds to no token is said to be off.
func TestOverlongNote(t *testing.T) {
	c := &config.Run{Rollout: config.Rollout{MaxNewTokens: 8}}
	for buffer, said := range map[float64]bool{0: false, 0.05: true, 0.0625: false, 0.2: false} {
		c.Algo.Overlong.Buffer = buffer
		if note := OverlongNote(c); (note != "") != said || said && !strings.Contains(note, "less than half a token") {
			t.Errorf("buffer %v: %q", buffer, note)
		}
		if got := overlongBuffer(c); (got == 0 && buffer > 0) != said {
			t.Errorf("buffer %v is %d tokens", buffer, got)
		}
	}
}
