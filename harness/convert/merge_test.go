package convert

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/train/checkpoint"
)

// A folder is replaced only if it is a model's and the weights come from elsewhere.
func TestTarget(t *testing.T) {
	root := t.TempDir()
	path := func(parts ...string) string { return filepath.Join(append([]string{root}, parts...)...) }
	for _, name := range []string{"model/config.json", "model/shards/rank.pt", "weights/model.safetensors", "other/notes.txt",
		"away/rank.pt"} {
		if err := os.MkdirAll(filepath.Dir(path(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path(name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(path("model", "shards"), path("link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, out, from, texts string
		replace                bool
		want                   string // empty: may be written
	}{
		{"new", "new", "away", "", false, ""},
		{"new below the source", "away/new", "away", "", false, ""},
		{"there", "model", "away", "", false, "already exists"},
		{"there, to be replaced", "model", "away", "", true, ""},
		{"weights alone", "weights", "away", "away", true, ""},
		{"no model", "other", "away", "", true, "not a model's folder"},
		{"the source itself", "model", "model", "", true, "holds the source"},
		{"the source below", "model", "model/shards", "", true, "holds the source"},
		{"the source behind a link", "model", "link", "", true, "holds the source"},
		{"the tokenizer", "model", "away", "model", true, "holds the source"},
		{"a name that begins the same", "model", "modelling", "", true, ""},
	} {
		c := &checkpoint.Container{Path: path(tt.from)}
		if tt.texts != "" {
			c.Texts = path(tt.texts)
		}
		err := target(path(tt.out), c, tt.replace)
		var refused *TargetError
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		case refused != nil && refused.Ask == tt.replace:
			t.Errorf("%s: asks to replace: %v", tt.name, refused.Ask)
		}
	}
}
