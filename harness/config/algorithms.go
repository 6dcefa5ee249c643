package config

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"strings"
	"sync"

	"exp/train/rl"
)

// notation explains the symbols in the equations of the table.
const notation = `A advantage, S score of a completion, mean and std over the completions of its problem,
  D = logprob - old logprob, r = exp(D), clip(x) = x bounded to [1 - clip.low, 1 + clip.high],
  sg(x) = x without gradient; losses are per token unless a sum says otherwise`

// algorithms returns the table of package rl with estimator and loss added to what a
// row sets, and nil for +Inf, which is null in a configuration. Nothing else depends on the
// kind, so every setting of an algorithm is a key that users can see and change. Callers must not change it.
var algorithms = sync.OnceValue(func() []rl.Algorithm {
	list := rl.Algorithms()
	for i, a := range list {
		sets := maps.Clone(a.Sets)
		if sets == nil {
			sets = map[string]any{}
		}
		for path, v := range sets {
			if f, ok := v.(float64); ok && math.IsInf(f, 1) {
				sets[path] = nil
			}
		}
		sets["algo.loss"] = a.Loss.Name
		if a.Advantage.Name != "" {
			sets["algo.advantage"] = a.Advantage.Name
		}
		list[i].Sets = sets
	}
	return list
})

// estimators returns the names of the advantage estimators with a property, in table
// order.
func estimators(have func(e rl.Estimator) bool) []string {
	var names []string
	for _, e := range rl.Estimators() {
		if have(e) {
			names = append(names, e.Name)
		}
	}
	return names
}

// losses returns the names of the policy losses with a property, in table order.
func losses(have func(l rl.PolicyLoss) bool) []string {
	var names []string
	for _, l := range rl.PolicyLosses() {
		if have(l) {
			names = append(names, l.Name)
		}
	}
	return names
}

func algorithmFacts() []AlgorithmFacts {
	var list []AlgorithmFacts
	for _, a := range algorithms() {
		f := AlgorithmFacts{Name: a.Name, Title: a.Title, Source: a.Source, Equation: a.Equation,
			Sets: map[string]string{}}
		for path, v := range a.Sets {
			f.Sets[path] = Format(lookup(path), plain(v))
		}
		list = append(list, f)
	}
	return list
}

func kinds() []string {
	var names []string
	for _, a := range algorithms() {
		names = append(names, a.Name)
	}
	return names
}

// byKind returns the default of the key at path: the kind's value in the table of
// algorithms, otherwise d, which is fixed or none.
func byKind(path string, d Default) Default {
	var cases []Case
	for _, a := range algorithms() {
		if v, ok := a.Sets[path]; ok && !(d.hasFixed && reflect.DeepEqual(d.fixed, plain(v))) {
			x := is(v)
			if v == nil {
				x = null()
			}
			cases = append(cases, when(a.Name, x))
		}
	}
	if cases == nil {
		return d
	}
	return by("algo.kind", d, cases...)
}

// settings lists what an algorithm sets, in the order of the keys: "loss ppo".
func settings(a rl.Algorithm) []string {
	var list []string
	for _, k := range schema().keys {
		if v, ok := a.Sets[k.Path]; ok {
			list = append(list, strings.TrimPrefix(k.Path, "algo.")+" "+Format(k, plain(v)))
		}
	}
	return list
}

// describeAlgorithms renders the table of algorithms for reading.
func describeAlgorithms() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n  What each sets, as defaults of keys under algo:\n  %s.\n", notation)
	for _, a := range algorithms() {
		fmt.Fprintf(&b, "\n  %s: %s\n    from  %s\n    is    %s\n    sets  %s\n", a.Name, a.Title, a.Source,
			a.Equation, strings.Join(settings(a), ", "))
	}
	return b.String()
}
