package serve

import (
	"strings"
	"testing"
	"time"

	"exp/experiments/store"
)

func TestShowActivity(t *testing.T) {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for want, a := range map[string]store.Activity{
		"prepare":             {Stage: "prepare", Since: ago(0)},
		"sft, step 12 of 800": {Stage: "sft", Step: 12, Of: 800},
		"train, step 0 of 8: validating, 3 of 9 completions":                           {Stage: "train", Of: 8, Phase: "validation", Done: 3, Total: 9},
		"train, step 2 of 8: updating the policy, 1024 of 2048 completions, for 2m05s": {Stage: "train", Step: 2, Of: 8, Phase: "policy", Done: 1024, Total: 2048, Since: ago(125 * time.Second)},
		"eval.gen test, 5 of 40, for 3s":                                               {Stage: "eval.gen test", Done: 5, Total: 40, Since: ago(3 * time.Second)},
	} {
		if got := showActivity(a, now).Text; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The page of a run says what the run is doing if it is alive, without script too.
func TestRunPageSaysWhatItDoes(t *testing.T) {
	s := newSite(t, two(t))
	doing := store.Activity{Stage: "train", Step: 61, Of: 200, Phase: "rollout", Done: 30, Total: 64}
	for _, name := range []string{"live", "broken"} {
		runs, err := s.db.Runs(t.Context(), store.RunQuery{Name: name})
		s.must(err)
		lock, err := s.db.LockRun(runs[0].RID)
		if name == "broken" {
			s.must(err)
			s.must(lock.Release())
		}
		s.must(s.db.WriteActivity(runs[0].RID, doing))
	}
	const line = `<span>train, step 61 of 200: sampling, 30 of 64 completions</span> <progress value="30" max="64"`
	if page := s.get("/run/" + s.idOf("live", 0)); !strings.Contains(page, line) {
		t.Error("the page of a live run does not say what it does")
	}
	if page := s.get("/run/" + s.idOf("broken", 0)); strings.Contains(page, "sampling") {
		t.Error("the page of a failed run says what it does")
	}
}
