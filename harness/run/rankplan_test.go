package run

import (
	"strings"
	"testing"

	"exp/harness/config"
)

// recipe loads a configuration of the repository.
func recipe(t *testing.T, file string, sets ...string) *config.Resolved {
	t.Helper()
	r, err := config.Load(config.Input{File: "../../configs/" + file, Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The plan of a step on several ranks says what each sends: gradients to their shards and
// parameters from them, and activations where ranks share products.
func TestPhases(t *testing.T) {
	r := recipe(t, "flowrl_7b_math.yaml", "train.slices=8")
	e, err := NewEstimateOn(r, 8)
	if err != nil {
		t.Fatal(err)
	}
	names, seconds := "", 0.0
	for _, p := range e.Phases {
		names, seconds = names+p.Name+"; ", seconds+p.Seconds
	}
	if want := "sampling; reference log-probs; forward and backward passes; gradients and parameters; "; names != want {
		t.Errorf("phases %s, want %s", names, want)
	}
	const updates = 16
	n := float64(e.Parameters + e.Heads)
	if got, want := float64(e.Phases[3].Sent), updates*2*4*n*7/8; got < want || got > 1.001*want {
		t.Errorf("gradients and parameters take %v bytes, want %v", got, want)
	}
	if e.Phases[1].Sent != 0 || seconds < 60 || seconds > 3600 {
		t.Errorf("phases %+v", e.Phases)
	}
	shared := recipe(t, "flowrl_7b_math.yaml", "compute.tensor_parallel=8")
	s, err := NewEstimateOn(shared, 8)
	if err != nil {
		t.Fatal(err)
	}
	if s.Phases[1].Sent == 0 || s.Total() >= e.Total() {
		t.Errorf("8 ranks that share products send %d bytes and need %d, others %d", s.Phases[1].Sent, s.Total(), e.Total())
	}
	for _, want := range []string{"on each of 8 ranks", "policy: moments of the optimizer", "that a rank sends in a step",
		"400 TFLOP/s", "calculated, not measured"} {
		if text := s.Text(""); !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	alone, err := NewEstimate(r)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(alone.Phases); n != 4 || alone.Phases[2].Seconds < 6*e.Phases[2].Seconds {
		t.Errorf("%d phases of one GPU, passes take %v s", n, alone.Phases)
	}
	for _, want := range []string{"s a step", "in this machine's pinned memory", "disk     up to", "50 GB/s to its host"} {
		if text := alone.Text(""); !strings.Contains(text, want) || strings.Contains(text, "traffic") {
			t.Errorf("the text of one GPU lacks %q or has traffic:\n%s", want, text)
		}
	}
	cpu, err := NewEstimateOn(recipe(t, "countdown_cpu_flowrl.yaml"), 2)
	if err != nil {
		t.Fatal(err)
	}
	if text := cpu.Text(""); !strings.Contains(text, "exp bench measures this machine") {
		t.Errorf("the text of a CPU:\n%s", text)
	}
}
