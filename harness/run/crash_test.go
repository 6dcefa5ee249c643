package run

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/experiments/store"
	"exp/kernels"
)

// breaking is a backend that panics in the n-th update of parameters.
type breaking struct {
	kernels.Backend
	updates, at int
}

func (b *breaking) AdamW(p, m, v, g kernels.Buffer, a kernels.AdamW) {
	if b.updates++; b.updates == b.at {
		panic("broken")
	}
	b.Backend.AdamW(p, m, v, g, a)
}

// A run that dies between two checkpoints takes the recorded steps after the last
// one again, finds the same bits, and ends as the run that did not die, with every
// completion recorded once.
func TestCrashBetweenCheckpoints(t *testing.T) {
	settings := []string{"checkpoint.every_steps=2", "store.samples.train=all"}
	whole := newLab(t)
	res, _ := whole.execute(whole.plan(0, settings...))

	l := newLab(t)
	good := l.be
	l.be = &breaking{Backend: good, at: 30 + 2*4} // 30 of sft, 2 a step: the last one
	died, err := l.try(context.Background(), l.plan(0, settings...), &quiet{})
	var p *PanicError
	if !errors.As(err, &p) || died.Run.Status != store.Failed {
		t.Fatalf("error %v, status %s; want a failed run with a *PanicError", err, died.Run.Status)
	}

	// As if it had been killed while the checkpoint before that was being removed.
	saved, err := filepath.Glob(filepath.Join(l.db.RunDir(died.Run.RID), "ckpt", "train-*", "step-00000002"))
	if err != nil || len(saved) != 1 {
		t.Fatalf("checkpoints %q, %v", saved, err)
	}
	half := filepath.Join(filepath.Dir(saved[0]), ".step-00000001.partial")
	if err := os.Mkdir(half, 0o777); err != nil {
		t.Fatal(err)
	}

	l.be = good
	done, again := l.execute(l.plan(0, settings...))
	if _, err := os.Stat(half); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v; it should be removed even though no checkpoint follows", half, err)
	}
	again.warnings = slices.DeleteFunc(again.warnings, func(w string) bool { return strings.Contains(w, "interrupted") })
	if len(again.warnings) == 0 || again.warnings[0] != "resuming from the checkpoint of step 2" {
		t.Errorf("warnings %q", again.warnings)
	}
	if done.Run.Chain != res.Run.Chain || done.Run.Steps != 4 {
		t.Errorf("%d steps with chain %s, want 4 and %s", done.Run.Steps, done.Run.Chain.Short(), res.Run.Chain.Short())
	}
	sameOutputs(t, l.outputs(done.Run.ID), whole.outputs(res.Run.ID))
	samples, err := l.db.Samples(context.Background(), done.Run.ID, store.SampleQuery{Scope: "train"})
	if want := 4 * 8 * 4; err != nil || len(samples) != want {
		t.Errorf("%d completions of training are recorded (%v), want %d", len(samples), err, want)
	}
}
