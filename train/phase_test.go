package train

import "testing"

// Every phase of a step tells how many completions it has done of how many, and ends with all.
func TestPhasesTellTheirProgress(t *testing.T) {
	r := newToyRun(t, PPO, 2)
	r.cfg.Steps, r.cfg.KL.RewardCoef, r.cfg.Epochs = 1, 0.05, 2
	tr := r.start()
	var order []string
	last := map[string][2]int{}
	tr.Phase = func(step int, phase string, done, total int) {
		if before, ok := last[phase]; !ok {
			order = append(order, phase)
		} else if step != 1 || done < before[0] || total != before[1] {
			t.Errorf("step %d, %s: %d of %d after %v", step, phase, done, total, before)
		}
		last[phase] = [2]int{done, total}
	}
	if _, err := tr.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := r.cfg.PromptsPerStep * r.cfg.Samples
	want := []string{"rollout", "grade", "reference", "values", "critic", "policy"}
	for i, phase := range want {
		total := n
		if i >= 4 {
			total *= r.cfg.Epochs
		}
		if i >= len(order) || order[i] != phase || last[phase] != [2]int{total, total} {
			t.Errorf("phases %v, %s ends with %v; want %v, each with its %d", order, phase, last[phase], want, total)
		}
	}
}
