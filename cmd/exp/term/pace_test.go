package term

import (
	"math"
	"testing"
	"time"
)

var epoch = time.Date(2026, 1, 2, 12, 4, 11, 0, time.UTC)

func at(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)))
}

func TestPaceMedian(t *testing.T) {
	var p pace
	p.start(at(0), 0)
	if _, ok := p.eta(at(0), 10); ok || p.rate(at(0), "step") != "" {
		t.Error("a forecast before the first step")
	}
	// Steps of 1, 1, 1, 7 s: the median is 1, the mean would be 2.5.
	for i, end := range []float64{1, 2, 3, 10} {
		p.observe(at(end), i+1)
		_, ok := p.eta(at(end), 10)
		if want := i+1 > 3; ok != want {
			t.Errorf("after %d steps: forecast %v, want %v", i+1, ok, want)
		}
	}
	if got := p.stepSeconds(); got != 1 {
		t.Errorf("median = %v, want 1", got)
	}
	if eta, _ := p.eta(at(10), 10); eta != 6*time.Second { // 6 steps left
		t.Errorf("eta = %v, want 6s", eta)
	}
	if eta, _ := p.eta(at(12), 10); eta != 4*time.Second { // two seconds later
		t.Errorf("eta = %v, want 4s", eta)
	}
	if eta, _ := p.eta(at(99), 10); eta != 0 {
		t.Errorf("eta of a late step = %v, want 0", eta)
	}
}

func TestPaceWindow(t *testing.T) {
	var p pace
	p.start(at(0), 0)
	now := 0.0
	for i := range 100 { // 90 steps of 5 s, then 10 of 0.5 s
		now += 5
		if i >= 90 {
			now -= 4.5
		}
		p.observe(at(now), i+1)
	}
	// Half of the window is fast: the two middle values are 0.5 and 5.
	if got := p.stepSeconds(); math.Abs(got-2.75) > 1e-6 {
		t.Errorf("median of the last 20 = %v, want 2.75", got)
	}
	if len(p.recent) != paceWindow {
		t.Errorf("%d values kept, want %d", len(p.recent), paceWindow)
	}
}

func TestPaceJumpsAndResets(t *testing.T) {
	var p pace
	p.start(at(0), 50) // resumed at 50
	p.observe(at(8), 54)
	if got := p.stepSeconds(); got != 2 { // 8 s for 4 steps
		t.Errorf("step = %v s, want 2", got)
	}
	if eta, ok := p.eta(at(8), 100); !ok || eta != 92*time.Second { // 46 left of 2 s
		t.Errorf("eta = %v %v, want 92s", eta, ok)
	}
	p.observe(at(9), 10) // went back: start over
	if p.seen != 0 || p.stepSeconds() != 0 {
		t.Errorf("after going back: seen %d, step %v s", p.seen, p.stepSeconds())
	}
}

func TestPaceRate(t *testing.T) {
	tests := []struct {
		each float64
		want string
	}{{0.16129, "6.2 step/s"}, {12.4, "12.4 s/step"}, {0.0005, "2000 step/s"}, {0.000004, "250k step/s"}}
	for _, tt := range tests {
		p := pace{recent: []float64{tt.each}, last: at(0), seen: 1}
		if got := p.rate(at(0), "step"); got != tt.want {
			t.Errorf("rate at %v s = %q, want %q", tt.each, got, tt.want)
		}
	}
}

// A first step that was short says little once the second one takes long.
func TestPaceRateOfFewSteps(t *testing.T) {
	var p pace
	p.start(at(0), 0)
	p.observe(at(1), 1)
	if got := p.rate(at(9), "job"); got != "8.0 s/job" {
		t.Errorf("8 s into the second job: %q", got)
	}
}

func TestTrendStaysSmall(t *testing.T) {
	var tr trend
	for i := range 10_000 {
		tr.add(Metric{"reward", float64(i)})
		if len(tr.points) >= trendPoints {
			t.Fatalf("%d points after %d values", len(tr.points), i+1)
		}
	}
	for i := 1; i < len(tr.points); i++ {
		if tr.points[i] <= tr.points[i-1] {
			t.Fatalf("a ramp is not rising at %d: %v", i, tr.points[i-1:i+1])
		}
	}
	if tr.first != 0 || tr.latest != 9999 {
		t.Errorf("ends %v, %v, want 0, 9999", tr.first, tr.latest)
	}
	tr.add(Metric{"loss", 1})
	if tr.name != "loss" || len(tr.points) != 1 {
		t.Errorf("another metric does not start a new trend: %q with %d points", tr.name, len(tr.points))
	}
}
