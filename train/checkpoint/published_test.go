package checkpoint_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/checkpoint"
	"exp/train/published"
)

// Published architectures of every family survive config.json and back.
func TestConfigRoundTrip(t *testing.T) {
	for _, name := range published.Names() {
		c, ok := published.Model(name)
		if !ok {
			t.Fatalf("%s is not known", name)
		}
		raw, err := checkpoint.ConfigJSON(c, checkpoint.F32, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := checkpoint.ParseConfig("config.json", raw); err != nil || !cmp.Equal(got, c) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c)
		}
	}
}

func TestReadConfigPublished(t *testing.T) {
	for name, text := range map[string]string{"Qwen/Qwen2.5-7B": checkpoint.Qwen25Published, "Qwen/Qwen3-0.6B": checkpoint.Qwen3Published} {
		got, err := checkpoint.ParseConfig("config.json", []byte(text))
		if want, _ := published.Model(name); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
}
