package term

import (
	"slices"
	"time"

	"exp/experiments/quantity"
)

const (
	paceWindow = 20 // steps that the median is taken of
	paceWarmup = 3  // steps after which the first forecast is made

	longStep = 2 * time.Second // a step that takes longer is shown phase by phase
)

// pace estimates how fast steps go. Its zero value has seen nothing; start it
// before use. The median of the last steps is used, not a mean: one step with a
// checkpoint or an evaluation in it must not make the forecast jump.
type pace struct {
	last   time.Time
	step   int       // at time last
	recent []float64 // seconds per step, the newest last, at most paceWindow
	seen   int       // steps since start
}

func (p *pace) start(now time.Time, from int) {
	*p = pace{last: now, step: from, recent: p.recent[:0]}
}

// observe records that step was reached now. Several steps at once count with
// their mean; a step that does not go forward restarts the measurement.
func (p *pace) observe(now time.Time, step int) {
	n := step - p.step
	if n <= 0 {
		p.start(now, step)
		return
	}
	each := now.Sub(p.last).Seconds() / float64(n)
	for range min(n, paceWindow) {
		p.recent = append(p.recent, each)
	}
	if over := len(p.recent) - paceWindow; over > 0 {
		p.recent = append(p.recent[:0], p.recent[over:]...)
	}
	p.last, p.step = now, step
	p.seen += n
}

// stepSeconds is the median time of the last steps, 0 before the first.
func (p *pace) stepSeconds() float64 {
	if len(p.recent) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(p.recent))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// long reports whether steps are long: the last ones were, or the present one is.
func (p *pace) long(now time.Time) bool {
	return p.stepSeconds() >= longStep.Seconds() || now.Sub(p.last) >= longStep
}

// eta forecasts the time from now to step total; false if it is too early.
func (p *pace) eta(now time.Time, total int) (time.Duration, bool) {
	if p.seen <= paceWarmup || total <= 0 || p.step > total {
		return 0, false
	}
	left := p.stepSeconds()*float64(total-p.step) - now.Sub(p.last).Seconds()
	return max(time.Duration(left*float64(time.Second)), 0), true
}

// rate formats the speed: "6.2 step/s", or "12.4 s/step" where a step takes
// longer than a second. It is empty before the first step. While few steps are known,
// the one under way counts with the time that it has taken.
func (p *pace) rate(now time.Time, unit string) string {
	s := p.stepSeconds()
	if s > 0 && p.seen <= paceWarmup {
		s = max(s, now.Sub(p.last).Seconds())
	}
	switch {
	case s <= 0:
		return ""
	case s > 1:
		return quantity.Fixed(s, 1) + " s/" + unit
	case s > 0.01:
		return quantity.Fixed(1/s, 1) + " " + unit + "/s"
	}
	return quantity.Count(int64(1/s)) + " " + unit + "/s"
}
