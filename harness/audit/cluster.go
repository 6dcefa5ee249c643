package audit

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// bins is into how many ranges the steps of a run are split.
const bins = 8

// longestForm bounds a form, in characters.
const longestForm = 48

var (
	words   = regexp.MustCompile(`\\?[a-z]+`)
	figures = regexp.MustCompile(`[0-9][0-9.,]*[0-9]|[0-9]`)
	series  = regexp.MustCompile(`(#, ?)(?:#, ?)+`)
)

// formOf returns the form of an answer: its text with # for each number and x for each letter alone.
func formOf(answer string) string {
	s := strings.Join(strings.Fields(strings.ToLower(answer)), " ")
	s = figures.ReplaceAllString(s, "#")
	s = words.ReplaceAllStringFunc(s, func(w string) string {
		if len(w) == 1 {
			return "x"
		}
		return w
	})
	s = series.ReplaceAllString(s, "$1…, ")
	if r := []rune(s); len(r) > longestForm {
		s = string(r[:longestForm-1]) + "…"
	}
	return s
}

// cluster sorts the findings into clusters and counts them by range of steps.
func (a *auditor) cluster() {
	r := &a.report
	r.Completions = len(a.found)
	a.ranges()
	byKey := map[string]*Cluster{}
	for _, f := range a.found {
		at := r.bin(f.step)
		r.Bins[at].Completions++
		if f.right {
			r.Right++
		}
		if f.changed {
			r.Changed++
		}
		if f.cause == "" {
			continue
		}
		r.Suspicious++
		key := string(f.cause) + "\n" + f.form
		compared := f.cause == Disagreement || f.cause == Changed
		if compared {
			key += "\n" + strings.Join(f.accepted, ",")
		}
		c := byKey[key]
		if c == nil {
			c = &Cluster{Cause: f.cause, Form: f.form, First: f.step, ByBin: make([]int, len(r.Bins))}
			if compared {
				c.Accepted, c.Refused = f.accepted, f.refused
			}
			byKey[key] = c
		}
		c.Completions++
		c.ByBin[at]++
		c.First, c.Last = min(c.First, f.step), max(c.Last, f.step)
		if f.step >= c.Example.Step {
			c.Example = f.example
		}
	}
	for _, c := range byKey {
		r.Clusters = append(r.Clusters, *c)
	}
	slices.SortFunc(r.Clusters, func(x, y Cluster) int {
		return cmp.Or(y.Completions-x.Completions, strings.Compare(string(x.Cause), string(y.Cause)),
			strings.Compare(x.Form, y.Form), slices.Compare(x.Accepted, y.Accepted))
	})
}

// ranges splits the steps that have completions into at most bins ranges of nearly equal length.
func (a *auditor) ranges() {
	if len(a.found) == 0 {
		return
	}
	first, last := a.found[0].step, a.found[0].step
	for _, f := range a.found {
		first, last = min(first, f.step), max(last, f.step)
	}
	n := min(bins, last-first+1)
	for i := range n {
		a.report.Bins = append(a.report.Bins, Bin{First: first + i*(last-first+1)/n,
			Last: first + (i+1)*(last-first+1)/n - 1})
	}
}

// bin returns the index of the range that a step is in.
func (r *Report) bin(step int64) int {
	return slices.IndexFunc(r.Bins, func(b Bin) bool { return b.First <= step && step <= b.Last })
}

// Share returns the cluster's share of the completions in each range of steps.
func (r *Report) Share(c Cluster) []float64 {
	shares := make([]float64, len(c.ByBin))
	for i, n := range c.ByBin {
		shares[i] = float64(n) / float64(max(r.Bins[i].Completions, 1))
	}
	return shares
}
