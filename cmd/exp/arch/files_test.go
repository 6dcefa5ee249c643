package arch

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// crowd checks that a package has few files, or a reason for more.
func (l law) crowd(dir string, files int) []string {
	reason := l.crowded[dir]
	switch {
	case files > l.files && reason == "":
		return []string{fmt.Sprintf("%s: %d files, more than %d: split it, or give a reason in law_test.go", dir, files, l.files)}
	case files <= l.files && reason != "":
		return []string{fmt.Sprintf("table: %s has no more than %d files", dir, l.files)}
	}
	return nil
}

func TestCrowd(t *testing.T) {
	l := law{files: 2, crowded: map[string]string{"rl": "a file per algorithm"}}
	for _, tt := range []struct {
		dir   string
		files int
		want  []string
	}{
		{"chat", 2, nil},
		{"chat", 3, []string{"chat: 3 files, more than 2: split it, or give a reason in law_test.go"}},
		{"rl", 3, nil},
		{"rl", 2, []string{"table: rl has no more than 2 files"}},
	} {
		if diff := cmp.Diff(tt.want, l.crowd(tt.dir, tt.files)); diff != "" {
			t.Errorf("%s with %d files (-want +got):\n%s", tt.dir, tt.files, diff)
		}
	}
}
