package compare

import (
	"math"
	"strings"
	"testing"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// An arm that learned nothing because its updates were skipped is not compared in silence.
func TestNoteSkippedUpdates(t *testing.T) {
	f := newFixture(t)
	norms := func(r store.Run, name string, values ...float64) {
		w := f.db.NewStepWriter(r.ID, 0, nil)
		for i, v := range values {
			f.must(w.Record(store.Step{Det: ident.Det{Step: int64(i + 1), Metrics: map[string]float64{name: v}},
				Chain: digest("chain")}))
		}
		f.must(w.Close())
	}
	a := f.put(plainRun("flow", "flowrl", 0, answers(2, 1)...))
	norms(a, "actor/grad_norm", 1, 2, 3)
	b := []store.Run{f.put(plainRun("ppo", "ppo", 0, answers(1, 1)...)), f.put(plainRun("ppo", "ppo", 1,
		answers(1, 1)...))}
	norms(b[0], "actor/grad_norm", math.NaN(), 2, math.Inf(1))
	norms(b[1], "actor/grad_norm", 1, math.NaN())
	r, err := f.compareRuns(Options{}, []store.Run{a}, b)
	f.must(err)
	const want = "ppo skipped updates of the actor at 3 of 5 steps: the gradient was not finite"
	if text := strings.Join(r.Notes, "\n"); strings.Count(text, "skipped") != 1 || !strings.Contains(text, want) {
		t.Errorf("notes\n%s\nwant one of skipped updates: %s", text, want)
	}
}
