package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The same tensors with another config.json are another model: another id, no results from the cache, and a plan made
// before the change is refused.
func TestArchitectureIsInTheID(t *testing.T) {
	l := newLab(t)
	dir, data := publishedFolder(t), verlFile(t)
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	before := loraRun(l, copied, data, "flowrl")
	if before.RID != loraRun(l, dir, data, "flowrl").RID {
		t.Error("the place of the model is part of the run's id")
	}
	l.execute(before)

	path := filepath.Join(copied, "config.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(text), `"rms_norm_eps"`)
	end := at + strings.Index(string(text[at:]), ",")
	changed := string(text[:at]) + `"rms_norm_eps": 0.125` + string(text[end:])
	if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	after := loraRun(l, copied, data, "flowrl")
	if after.RID == before.RID || after.External.Weights != before.External.Weights {
		t.Error("another epsilon, same tensors: the id must differ, the digest of the weights must not")
	}
	if res, _ := l.execute(after); res.Cached > 1 {
		t.Errorf("%d stages came from the cache; only the data may", res.Cached)
	}
	l.options.NoCache = true
	if _, err := l.try(t.Context(), before, &quiet{}); err == nil {
		t.Error("trained a model that the plan did not see")
	}
}
