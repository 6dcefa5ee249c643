package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"exp/experiments/store"
)

// killed is the run of TestKill: more steps and checkpoints than the smoke recipe, so
// that kills hit them.
var killed = []string{"--set", "train.steps=8", "--set", "eval.online.every_steps=0"}

// Killed with SIGKILL at random points, again and again, a run ends as if it had not
// been: the same chain, steps and weights, every step and completion once, a whole
// database, and nothing half-written. EXP_TEST_ALL=1 kills twice as often.
func TestKill(t *testing.T) {
	t.Parallel()
	kills := 25
	switch {
	case testing.Short():
		kills = 4
	case os.Getenv("EXP_TEST_ALL") != "":
		kills = 50
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	wanted := filepath.Join(t.TempDir(), "unbroken")
	smoke(t, wanted, killed...).succeeds(t)
	k := &killer{left: kills, most: 4 * kills, at: map[string]int{}, want: consistent(t, wanted), rows: rowsOf(t, wanted)}
	t.Run("group", func(t *testing.T) {
		for i := range uint64(2) { // two at a time, each with its own store
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for r := rand.New(rand.NewPCG(seed, i)); k.more() && !t.Failed(); {
					k.life(t, r)
				}
			})
		}
	})
	t.Logf("killed in: %v; %d runs came to their end", k.at, k.lives)
	if !testing.Short() && !k.spread() {
		t.Errorf("the kills were not spread: %v", k.at)
	}
}

// killer kills runs until it has done so often enough.
type killer struct {
	want record
	rows rowCounts

	mu    sync.Mutex
	left  int
	most  int // further kills until they are spread
	lives int
	at    map[string]int // kills by the stage that was running
}

func (k *killer) more() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.left > 0 || !testing.Short() && !k.spread() && k.left+k.most > 0
}

// spread reports whether training was killed, and stages of at least four kinds.
func (k *killer) spread() bool { return k.at["train"] > 0 && len(k.at) >= 4 }

// life starts a run, kills it until it finishes or has been killed often enough, and
// compares it with the undisturbed run.
func (k *killer) life(t *testing.T, r *rand.Rand) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	again := append([]string{"run", smokeRecipe, "--store", dir}, killed...)
	args := again
	for k.more() {
		p := start(t, args...)
		stage := p.killSomewhere(r)
		switch code := p.end(); code {
		case -1:
			k.mu.Lock()
			k.left--
			k.at[stage]++
			k.mu.Unlock()
		case 0:
			// It was faster than the kill.
		default:
			t.Fatalf("%q: exit code %d\n%s", args, code, p.stderr.String())
		}
		db, err := store.Open(dir, store.Options{ReadOnly: true})
		if errors.Is(err, store.ErrNoStore) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		runs, err := db.Runs(context.Background(), store.RunQuery{})
		if err := errors.Join(err, db.Check(context.Background()), db.Close()); err != nil {
			t.Fatal(err)
		}
		if len(runs) > 0 && runs[0].Status == store.Done {
			break
		}
		if args = again; len(runs) > 0 && r.IntN(2) == 0 {
			args = []string{"resume", "@last", "--store", dir}
		}
	}
	exp(t, append(slices.Clone(again), "-q")...).succeeds(t)
	consistent(t, dir).same(t, k.want)
	if got := rowsOf(t, dir); got != k.rows {
		t.Errorf("%+v rows are recorded, unbroken: %+v", got, k.rows)
	}
	k.mu.Lock()
	k.lives++
	k.mu.Unlock()
}

// killSomewhere kills a process some milliseconds after the beginning of some stage, or
// of itself, and returns the stage that it was in.
func (p *process) killSomewhere(r *rand.Rand) (stage string) {
	stages := []string{"", "prepare", "init", "sft", "train", "train", "train", "merge", "eval.gen", "eval.score"}
	wanted := stages[r.IntN(len(stages))]
	stage = "start"
	for wanted != "" {
		s, more := <-p.stage
		if !more {
			return "end"
		}
		if stage = s; s == wanted {
			break
		}
	}
	longest := 40
	if stage == "train" || stage == "start" {
		longest = 250
	}
	timer := time.NewTimer(time.Duration(r.IntN(longest*1000)) * time.Microsecond)
	defer timer.Stop()
	for {
		select {
		case s, more := <-p.stage:
			if !more {
				return "end"
			}
			stage = s
		case <-timer.C:
			p.Process.Kill()
			return stage
		}
	}
}

// rowCounts counts what must be recorded once.
type rowCounts struct{ steps, points, samples, verdicts, evals int }

func rowsOf(t *testing.T, dir string) (n rowCounts) {
	t.Helper()
	ctx := context.Background()
	db, err := store.Open(dir, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	runs, err := db.Runs(ctx, store.RunQuery{})
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	steps, err1 := db.Steps(ctx, runs[0].ID, 0, store.AllSteps)
	curves, err2 := db.Metrics(ctx, runs[0].ID, "", 0, store.AllSteps)
	samples, err3 := db.Samples(ctx, runs[0].ID, store.SampleQuery{})
	evals, err4 := db.Evals(ctx, runs[0].ID)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	n = rowCounts{steps: len(steps), samples: len(samples), evals: len(evals)}
	for _, c := range curves {
		if c.Det {
			n.points += len(c.Values)
		}
	}
	for _, s := range samples {
		if s.Verdict != nil {
			n.verdicts++
		}
	}
	return n
}
