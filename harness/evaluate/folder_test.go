package evaluate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/harness/inspect"
)

// A folder of weights is evaluated as a run that trains nothing, named after the folder.
func TestConfig(t *testing.T) {
	peft := filepath.Join("..", "inspect", "testdata", "peft")
	suites := config.Value{Path: config.SuitesKey, Value: []string{"a", "b"}, From: "--suite"}
	f := Folder{Folder: inspect.Folder{Dir: filepath.Join(peft, "base"), Adapter: filepath.Join(peft, "uniform")}, Values: []config.Value{suites}}
	r, err := f.Config()
	if err != nil {
		t.Fatal(err)
	}
	c := &r.Run
	if c.Name != "eval-base-uniform" || c.Algorithm() != config.None || c.Train.Steps != 0 || c.Eval.Final.MaxNewTokens != longest {
		t.Errorf("%s with %s, %d steps, %d tokens", c.Name, c.Algorithm(), c.Train.Steps, c.Eval.Final.MaxNewTokens)
	}
	if !filepath.IsAbs(c.Model.Base) || !filepath.IsAbs(c.Model.Adapter) || strings.Join(c.Eval.Final.Suites, " ") != "a b" {
		t.Errorf("base %s, adapter %s, suites %v", c.Model.Base, c.Model.Adapter, c.Eval.Final.Suites)
	}
	f.Sets = []string{"rollout.max_sequences=3"}
	if r, err = f.Config(); err != nil || r.Run.Rollout.MaxSequences != 3 {
		t.Errorf("max_sequences %d, %v", r.Run.Rollout.MaxSequences, err)
	}
	var none *NoWeightsError
	if _, err := (Folder{Folder: inspect.Folder{Dir: peft}}).Config(); !errors.As(err, &none) || none.Kind != "" {
		t.Errorf("a folder without weights: %v", err)
	}
	bare := t.TempDir()
	if err := os.MkdirAll(filepath.Join(bare, "iter_0000003", "mp_rank_00"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bare, "latest_checkpointed_iteration.txt"), []byte("3"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = (Folder{Folder: inspect.Folder{Dir: bare}}).Config()
	if !errors.As(err, &none) || none.Kind != "Megatron" || !strings.Contains(none.Hint(), filepath.Join(bare, "huggingface")) {
		t.Errorf("weights without a config.json: %v", err)
	}
}

// The folder of a run stands for the weights in it, and names the evaluation by the run.
func TestRunFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("0123456789abcdef", 4))
	if err := os.MkdirAll(filepath.Join(dir, "model"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "model", "config.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := weightsIn(dir)
	if err != nil || got != filepath.Join(dir, "model") || nameOf(got) != "eval-01234567" {
		t.Errorf("%s, called %s, %v", got, nameOf(got), err)
	}
	if name := nameOf("/x/" + strings.Repeat("ü y", 60)); len(name) > 64 || strings.Trim(name, "evaly-") != "" {
		t.Errorf("name %q", name)
	}
}

func TestPassK(t *testing.T) {
	for n, want := range map[int]string{0: "1", 1: "1", 3: "1 2", 8: "1 2 4 8"} {
		if got := strings.Join(PassK(n), " "); got != want {
			t.Errorf("%d samples: %s, want %s", n, got, want)
		}
	}
}
