package rl

import "fmt"

// Alike counts steps whose completions all earned the same reward, from the first one that it is told of.
type Alike struct {
	steps  int
	first  int // step
	reward float64
	over   bool // a step was different, or Add has said so
}

// mostAlike is the number of such steps after which Add says so: by then a policy that can earn something mostly has.
const mostAlike = 10

// Add takes the metrics of a step. Once all steps have been alike for long, it says so; otherwise it returns "".
func (a *Alike) Add(step int, list []Metric) string {
	low, high, known := 0.0, 0.0, 0
	for _, m := range list {
		switch m.Name {
		case "critic/score/min":
			low, known = m.Value, known+1
		case "critic/score/max":
			high, known = m.Value, known+1
		}
	}
	if a.steps == 0 {
		a.first, a.reward = step, low
	}
	if a.over || known < 2 || low != high || low != a.reward {
		a.over = true
		return ""
	}
	if a.steps++; a.steps < mostAlike {
		return ""
	}
	a.over = true
	return fmt.Sprintf("all completions of steps %d to %d earned %v: nothing tells good ones from bad ones", a.first,
		step, low)
}
