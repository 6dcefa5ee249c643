package run

import "testing"

func TestInterruptedError(t *testing.T) {
	for steps, want := range map[int64]string{0: "run : stopped in sft", 1: "run : stopped in sft after 1 step",
		2: "run : stopped in sft after 2 steps"} {
		if got := (&InterruptedError{Stage: "sft", Step: steps}).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
