package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every recipe loads, says nothing that has no effect, and keeps to the line.
func TestStarters(t *testing.T) {
	dir := t.TempDir()
	for _, task := range StarterTasks() {
		for _, algo := range StarterAlgos("") {
			s := Starter{Task: task, Algo: algo}
			if slices.Contains(StartersFromFiles(), task) {
				if _, err := NewRecipe(s); err == nil || !strings.Contains(err.Error(), "needs a model and problems") {
					t.Errorf("%s without files: %v", task, err)
				}
				s.Model, s.Data = "models/m", "data/train.jsonl"
			}
			text, err := NewRecipe(s)
			if want, refused := map[string]string{"gdpo": "only one", "luffy": "has none", "grpo_process": "an outcome has none",
				"pure": "an outcome has none"}[algo]; refused && task == "outcomes" {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s on outcomes: %v", algo, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "recipe.yaml")
			if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			r, err := Load(Input{File: file})
			if err != nil {
				t.Errorf("%s on %s: %v\n%s", algo, task, err, text)
				continue
			}
			if len(r.Dropped) > 0 || r.Run.Task.Kind != task || r.Run.Algo.Kind != algo {
				t.Errorf("%s on %s: task %s, algorithm %s, without effect %v", algo, task, r.Run.Task.Kind, r.Run.Algo.Kind, r.Dropped)
			}
			for _, line := range strings.Split(text, "\n") {
				if len(line) > 120 || strings.HasSuffix(line, " ") {
					t.Errorf("%s on %s: line %q", algo, task, line)
				}
			}
		}
	}
}
