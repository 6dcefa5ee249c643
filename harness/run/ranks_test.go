package run

import (
	"strings"
	"sync"
	"testing"

	"exp/harness/stage"
	"exp/kernels/ref"
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

// Ranks that only sample need neither a slice nor room for gradients. In SFT they learn, too.
func TestCheckRanksThatSample(t *testing.T) {
	for _, tt := range []struct {
		ranks int
		sets  []string
		want  string
	}{
		{10, []string{"compute.rollout_ranks=2"}, ""},
		{11, []string{"compute.rollout_ranks=2"}, "8 slices (train.slices), and every rank that learns needs one"},
		{10, []string{"compute.rollout_ranks=0"}, "8 slices (train.slices), and every rank needs one"},
		{10, []string{"compute.rollout_ranks=2", "sft={steps: 1, optim: {lr: 1e-5}}"}, "and in SFT (sft.steps) every rank needs one"},
		{8, []string{"compute.rollout_ranks=8"}, "no rank of 8 learns"},
		{8, []string{"compute.rollout_ranks=7", "compute.offload=all"}, ""},
		{8, []string{"compute.rollout_ranks=6", "compute.offload=all"}, "every rank that learns exchanges gradients"},
		{8, []string{"compute.rollout_ranks=7", "compute.offload=all", "sft={steps: 1, optim: {lr: 1e-5}}"}, "in SFT (sft.steps) every rank " +
			"exchanges gradients"},
	} {
		err := CheckRanks(recipe(t, "flowrl_7b_math.yaml", append(tt.sets, "train.slices=8", "rollout.staleness=1")...),
			tt.ranks)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%d ranks, %v: %v, want %q", tt.ranks, tt.sets, err, tt.want)
		}
	}
}

// Stages of a job lift its limit where they wait for a whole step.
func TestJoin(t *testing.T) {
	groups := ranks.InProcess(2)
	var done sync.WaitGroup
	for _, group := range groups {
		done.Go(func() {
			lifted := false
			g := &Ranks{Group: group, hosts: []string{"A", "B"}, Wait: func(on bool) { lifted = on }}
			r := recipe(t, "countdown_cpu_flowrl.yaml")
			e := &stage.Env{Config: r, Backend: ref.New[float32]()}
			leave, err := g.join(e)
			defer leave()
			if err != nil || e.Ranks != ranks.Group(g) {
				t.Errorf("join = %v, ranks %v", err, e.Ranks)
				return
			}
			if e.Wait(true); !lifted {
				t.Error("the limit is not lifted")
			}
		})
	}
	done.Wait()
}
