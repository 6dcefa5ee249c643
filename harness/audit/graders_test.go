package audit

import (
	"slices"
	"testing"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// TestGradersOf: the grader of the rewards comes first, and each is named once.
func TestGradersOf(t *testing.T) {
	db, err := store.Open(t.TempDir(), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for text, want := range map[string][]string{
		`{"task":{"math":{"grader":"exp"}},"eval":{"final":{"graders":["prime","exp","math_dapo"]}}}`: {"exp", "prime", "math_dapo"},
		`{"task":{"math":{"grader":"prime"}}}`:                                                        {"prime"},
		`{"task":{"kind":"countdown"}}`:                                                               nil,
	} {
		d := ident.Sum([]byte(text))
		run, _, err := db.EnsureRun(t.Context(), store.NewRun{RID: d, XID: d, Name: "math", Numerics: "cpu/fma", Code: d,
			Config: store.Config{Digest: d, JSON: text}})
		if err != nil {
			t.Fatal(err)
		}
		if got := GradersOf(t.Context(), db, run); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
