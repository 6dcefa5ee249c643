package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Numbers come back from JSON as the kinds of their keys say.
func TestStored(t *testing.T) {
	for _, tt := range []struct {
		text  string
		path  string
		want  any
		known bool
	}{
		{`{"train":{"steps":4,"optim":{"lr":1}}}`, "train.optim.lr", 1.0, true},
		{`{"train":{"steps":4,"optim":{"lr":1}}}`, "train.steps", int64(4), true},
		{`{"store":{"samples":{"train":1}}}`, "store.samples.train", 1.0, true},
		{`{"eval":{"final":{"pass_k":[1,8]}}}`, "eval.final.pass_k", []any{int64(1), int64(8)}, true},
		{`{"name":null}`, "name", nil, true},
		{`{"later":{"key":2}}`, "later.key", int64(2), false},
		{`{"later":{"key":2.5}}`, "later.key", 2.5, false},
	} {
		values, known, err := Stored(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := StoredAt(values, tt.path)
		if d := cmp.Diff(tt.want, got); d != "" || !ok || known != tt.known {
			t.Errorf("%s: %s there %v, known %v (-want +got):\n%s", tt.text, tt.path, ok, known, d)
		}
	}
	if _, there := StoredAt(map[string]any{"a": int64(1)}, "a.b"); there {
		t.Error("a number has no keys")
	}
	if _, _, err := Stored(`{"a":`); err == nil {
		t.Error("half of a configuration")
	}
}
