package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzLoad feeds arbitrary files and --set expressions to the loader: it must
// not panic, and what it accepts must read back from its own YAML.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "testdata/broken/*.yaml", recipes + "*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			// Only the file itself: extends would read from the disk.
			f.Add(strings.ReplaceAll(string(data), "extends:", "#"), "train.steps=3")
		}
	}
	plain, err := os.ReadFile("testdata/plain.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, set := range []string{"a=b", "rollout.stop+=[a]", "algo={kind: ppo}", "x", "train.steps=", "=", "eval.final.pass_k=[1,", "algo.kind=\"\xff\""} {
		f.Add(string(plain), set)
	}
	f.Fuzz(func(t *testing.T, text, set string) {
		if strings.Contains(text, "extends") || len(text) > 8<<10 {
			return
		}
		r, err := Load(Input{File: "fuzz.yaml", Data: []byte(text), Sets: []string{set}})
		if err != nil {
			var errs Errors
			if !errors.As(err, &errs) || len(errs) == 0 {
				t.Fatalf("error of type %T: %v", err, err)
			}
			errs.Text(true)
			return
		}
		again, err := Load(Input{File: "again.yaml", Data: []byte(r.YAML())})
		if err != nil {
			t.Fatalf("its own YAML is refused: %v\n%s", err, r.YAML())
		}
		if again.YAML() != r.YAML() {
			t.Fatalf("reads back as\n%s\nwas\n%s", again.YAML(), r.YAML())
		}
	})
}
