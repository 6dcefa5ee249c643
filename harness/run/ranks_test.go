package run

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"exp/harness/config"
	"exp/harness/ranks/nccl"
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
			leave, err := g.join(e, config.Train)
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

// namedGPU is a GPU with a name and nothing else.
type namedGPU struct{ gpu }

func (namedGPU) UUID() (string, error) { return "GPU-1", nil }

// Ranks do not begin if some of them compute on the CPU or have other releases of NCCL; the
// error says which.
func TestLinkRefused(t *testing.T) {
	link := func(f func(g *Ranks) error) error {
		errs := make([]error, 4)
		var done sync.WaitGroup
		for i, group := range ranks.InProcess(len(errs)) {
			done.Go(func() { errs[i] = f(&Ranks{Group: group, hosts: []string{"A", "B", "C", "D"}}) })
		}
		done.Wait()
		for i, err := range errs {
			if err == nil || err.Error() != errs[0].Error() {
				t.Errorf("rank %d: %v, rank 0: %v", i, err, errs[0])
			}
		}
		return errs[0]
	}
	for onCPU, want := range map[int]string{
		3: "rank 3 on D computes on the CPU, rank 0 on A on a GPU: name the device",
		0: "rank 1 on B computes on a GPU, rank 0 on A on the CPU: name the device",
	} {
		err := link(func(g *Ranks) error {
			if g.Rank() == onCPU {
				return g.ownDevices(nil)
			}
			return g.ownDevices(namedGPU{})
		})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	err := link(func(g *Ranks) error {
		version := 22703
		if g.Rank() == 2 {
			version = 22304
		}
		_, err := g.shareID(nccl.Library{Version: version}.Release(), nccl.ID("id"))
		return err
	})
	var e *NCCLVersionsError
	if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), "rank 2 on C has NCCL 2.23.4, rank 0 on A has NCCL 2.27.3") ||
		e.ExitCode() != 7 || !strings.Contains(e.Hint(), "EXP_NCCL=") {
		t.Errorf("releases that differ: %v", err)
	}
}

// Each rank gets its crew's placement in training; in SFT all ranks learn.
func TestOrderPlaces(t *testing.T) {
	r := recipe(t, "flowrl_7b_math.yaml", "rollout.staleness=1", "compute.rollout_ranks=2")
	learner, sampler := stage.Placement{CacheTokens: 1}, stage.Placement{CacheTokens: 2}
	for kind, learning := range map[config.Stage]int{config.Train: 6, config.SFT: 8} {
		o := order{Kind: kind, Placement: learner, Sampling: sampler}
		for rank := range 8 {
			if got := o.placement(&r.Run, rank, 8); (got == learner) != (rank < learning) || got != sampler && got != learner {
				t.Errorf("%s: rank %d of 8 has %+v", kind, rank, got)
			}
		}
	}
}
