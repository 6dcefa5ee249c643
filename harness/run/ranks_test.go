package run

import (
	"strings"
	"sync"
	"testing"

	"exp/train/ranks"
)

// Ranks of another program, or of a world that is too small, do not begin.
func TestMeet(t *testing.T) {
	meet := func(size int, program func(rank int) string) []error {
		groups := ranks.InProcess(3)
		errs := make([]error, len(groups))
		var done sync.WaitGroup
		for i, g := range groups {
			done.Go(func() {
				r := &Ranks{Group: g}
				errs[i] = r.Meet(size, program(i), "libmpi.so (Open MPI): 4.1")
				if n := r.Here(); errs[i] == nil && n != len(groups) {
					t.Errorf("%d ranks are here, want %d", n, len(groups))
				}
			})
		}
		done.Wait()
		return errs
	}
	same := func(int) string { return "exp 1" }
	tests := []struct {
		size    int
		program func(rank int) string
		want    string
	}{
		{3, same, ""},
		{4, same, "--ranks 4, but the launcher started worlds of 3: it does not belong to the library libmpi.so"},
		{3, func(rank int) string { return "exp " + strings.Repeat("1", 1+rank/2) }, "the program of rank 2 on "},
	}
	for _, tt := range tests {
		for i, err := range meet(tt.size, tt.program) {
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("size %d, rank %d: %v, want %q", tt.size, i, err, tt.want)
			}
		}
	}
}
