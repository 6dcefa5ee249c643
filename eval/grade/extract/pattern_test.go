package extract

import "testing"

func TestPatternsCompile(t *testing.T) {
	if len(patterns) < 100 {
		t.Fatalf("%d patterns", len(patterns))
	}
	for _, p := range patterns {
		if p.compiled() == nil {
			t.Error("a pattern is nil")
		}
	}
}
