package stat

import (
	"fmt"
	"slices"
)

// Validation holds the S graded samples of a validation pass, in any order.
type Validation struct {
	Source    []string // [S] the problem's data set
	Problem   []string // [S]
	Answer    []string // [S]; nil without answers to vote on
	Variables []Variable
	Turns     []int // of conversations; nil if none
}

// Variable is a number per sample: reward, acc, a length.
type Variable struct {
	Name   string
	Values []float64 // [S]
}

// ValidationMetric is a named number.
type ValidationMetric struct {
	Name  string
	Value float64
}

// Metrics returns verl's validation metrics (process_validation_metrics and _val_metrics_update). For N
// samples of a problem and n = 2, 4, 8, … below N, and N:
//
//	mean@N, std@N                 over the problem's samples; std only for N > 1
//	best@n/mean, best@n/std       BootstrapSubsets of the maximum
//	worst@n/…, maj@n/…            of the minimum and the majority's value
//
// each averaged over the problems of a source that have it, and named SECTION/SOURCE/VARIABLE/METRIC.
// SECTION is val-core for mean, best and maj at the source's largest n of the core variable (acc if
// present, else reward), and val-aux otherwise. val-aux/num_turns/{min,max,mean} follow.
func (v Validation) Metrics(d SubsetDraws) []ValidationMetric {
	core := "reward"
	for _, x := range v.Variables {
		if x.Name == "acc" {
			core = "acc"
		}
	}
	var out []ValidationMetric
	for _, s := range v.sources() {
		for _, x := range v.Variables {
			list := v.ofSource(s, x, d)
			most := 0
			for _, m := range list {
				most = max(most, m.n)
			}
			for _, m := range list {
				section := "val-aux"
				if x.Name == core && m.n == most && m.kind != "std" && m.kind != "worst" {
					section = "val-core"
				}
				out = append(out, ValidationMetric{section + "/" + s.name + "/" + x.Name + "/" + m.name(),
					m.sum / m.problems})
			}
		}
	}
	if len(v.Turns) > 0 {
		var sum float64
		for _, n := range v.Turns {
			sum += float64(n)
		}
		out = append(out,
			ValidationMetric{"val-aux/num_turns/min", float64(slices.Min(v.Turns))},
			ValidationMetric{"val-aux/num_turns/max", float64(slices.Max(v.Turns))},
			ValidationMetric{"val-aux/num_turns/mean", sum / float64(len(v.Turns))})
	}
	return out
}

// source is a data set with the samples of each of its problems.
type source struct {
	name     string
	problems [][]int
}

// sources returns data sets and problems in order of first appearance.
func (v Validation) sources() []source {
	var out []source
	set := make(map[string]int)
	problem := make(map[[2]string]int)
	for i, name := range v.Source {
		s, ok := set[name]
		if !ok {
			s = len(out)
			set[name] = s
			out = append(out, source{name: name})
		}
		key := [2]string{name, v.Problem[i]}
		p, ok := problem[key]
		if !ok {
			p = len(out[s].problems)
			problem[key] = p
			out[s].problems = append(out[s].problems, nil)
		}
		out[s].problems[p] = append(out[s].problems[p], i)
	}
	return out
}

// problemMetric is a metric summed over problems.
type problemMetric struct {
	kind     string // mean, std, best, worst or maj
	n        int
	moment   string // mean or std of a bootstrap; otherwise empty
	sum      float64
	problems float64
}

func (m problemMetric) name() string {
	if m.moment == "" {
		return fmt.Sprintf("%s@%d", m.kind, m.n)
	}
	return fmt.Sprintf("%s@%d/%s", m.kind, m.n, m.moment)
}

// ofSource returns the metrics of x in order of first appearance.
func (v Validation) ofSource(s source, x Variable, d SubsetDraws) []problemMetric {
	var list []problemMetric
	add := func(kind string, n int, moment string, value float64) {
		k := slices.IndexFunc(list, func(m problemMetric) bool {
			return m.kind == kind && m.n == n &&
				m.moment == moment
		})
		if k < 0 {
			k = len(list)
			list = append(list, problemMetric{kind: kind, n: n, moment: moment})
		}
		list[k].sum += value
		list[k].problems++
	}
	for _, samples := range s.problems {
		values, answers := pick(x.Values, samples), pick(v.Answer, samples)
		N := len(samples)
		all := MomentsOf(values)
		add("mean", N, "", all.Mean)
		if N == 1 {
			continue
		}
		add("std", N, "", all.Std)
		for n := 2; ; n = min(2*n, N) {
			spread := func(kind string, reduce func(index []int) float64) {
				m := BootstrapSubsets(N, n, d, reduce)
				add(kind, n, "mean", m.Mean)
				add(kind, n, "std", m.Std)
			}
			spread("best", func(index []int) float64 { return slices.Max(pick(values, index)) })
			spread("worst", func(index []int) float64 { return slices.Min(pick(values, index)) })
			if v.Answer != nil {
				spread("maj", func(index []int) float64 { return Majority(answers, values, index) })
			}
			if n == N {
				break
			}
		}
	}
	return list
}

// pick returns the elements of x at index; nil for nil.
func pick[E any](x []E, index []int) []E {
	if x == nil {
		return nil
	}
	out := make([]E, len(index))
	for k, i := range index {
		out[k] = x[i]
	}
	return out
}
