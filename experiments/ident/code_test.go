package ident

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompareFiles(t *testing.T) {
	a := []File{{"both", Digest{1}}, {"edited", Digest{2}}, {"gone", Digest{3}}}
	b := []File{{"added", Digest{3}}, {"both", Digest{1}}, {"edited", Digest{4}}}
	want := []FileChange{{"added", OnlyInB}, {"edited", Changed}, {"gone", OnlyInA}}
	if d := cmp.Diff(want, CompareFiles(a, b)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := CompareFiles(a, a); len(got) > 0 {
		t.Errorf("a list and itself: %v", got)
	}
}
