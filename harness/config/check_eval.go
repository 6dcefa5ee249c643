package config

import (
	"fmt"
	"slices"
	"strings"

	"exp/eval"
	"exp/eval/stat"
	"exp/experiments/spelling"
)

func evalChecks() []check {
	list := []check{
		{[]string{"eval.online.every_steps", "data.val.source"}, func(r *Run) (string, string) {
			if r.Eval.Online.EverySteps > 0 && r.Data.Val.Source == None {
				return "eval.online.every_steps is set, but data.val.source is none",
					"give data.val a source, or eval.online.every_steps: 0"
			}
			return "", ""
		}},
		{[]string{"eval.online.problems", "data.val.size"}, func(r *Run) (string, string) {
			if have := r.Data.Val.Size; have > 0 && r.Eval.Online.Problems > have && r.Task.Kind != MixedTask {
				return fmt.Sprintf("eval.online.problems (%d) is above data.val.size (%d)", r.Eval.Online.Problems,
					have), "0 takes all"
			}
			return "", ""
		}},
		{[]string{"eval.online.best"}, func(r *Run) (string, string) {
			return r.Eval.Online.unknownBest(r.Task.Mixes())
		}},
		greedy("eval.online", func(r *Run) (int, float64) { return r.Eval.Online.N, r.Eval.Online.Temperature }),
		greedy("eval.final", func(r *Run) (int, float64) { return r.Eval.Final.N, r.Eval.Final.Temperature }),
		{[]string{"eval.final.pass_k", "eval.final.n"}, func(r *Run) (string, string) {
			last := 0
			for _, k := range r.Eval.Final.PassK {
				switch {
				case k > r.Eval.Final.N:
					return fmt.Sprintf("eval.final.pass_k has %d, above eval.final.n (%d)", k, r.Eval.Final.N),
						"pass@k needs at least k completions; it is never extrapolated"
				case k <= last:
					return fmt.Sprintf("eval.final.pass_k is not rising at %d", k),
						"list each k once, the smallest first"
				}
				last = k
			}
			return "", ""
		}},
		{[]string{"eval.final.suites"}, func(r *Run) (string, string) {
			for i, s := range r.Eval.Final.Suites {
				if slices.Contains(r.Eval.Final.Suites[:i], s) {
					return fmt.Sprintf("eval.final.suites has %s twice", s), "name each suite once"
				}
			}
			return "", ""
		}},
		{[]string{"eval.final.graders", "task.kind"}, func(r *Run) (string, string) {
			own := slices.ContainsFunc(r.Eval.Final.Suites, func(s string) bool { return s == "test" || s == "val" })
			if own && len(r.Eval.Final.Graders) > 0 && r.Task.kind().grader == nil {
				return fmt.Sprintf("eval.final.graders compare answers, but the run's own data is of the task %s, "+
						"which has its own grader", r.Task.Kind),
					"leave test and val out of eval.final.suites, or leave the graders out"
			}
			return "", ""
		}},
		{[]string{"compare.vary"}, func(r *Run) (string, string) {
			for _, glob := range r.Compare.Vary {
				if !matchesAny(glob) {
					help := ""
					if near := spelling.Nearest(glob, append(paths(), blocks()...)); near != "" {
						help = fmt.Sprintf("did you mean %q?", near)
					}
					return fmt.Sprintf("compare.vary names %q, which matches no key", glob), help
				}
			}
			return "", ""
		}},
	}
	return append(list, asksSuites(), asksOnce(),
		hasSplit("val", func(r *Run) Split { return r.Data.Val }),
		hasSplit("test", func(r *Run) Split { return r.Data.Test }))
}

// asksSuites checks that there are suites to ask as the settings say.
func asksSuites() check {
	keys := []string{"eval.final.likelihood", "eval.final.shots", "eval.final.suites"}
	return check{keys, func(r *Run) (string, string) {
		f := r.Eval.Final
		if slices.ContainsFunc(f.Suites, func(s string) bool { return s != "test" && s != "val" }) {
			return "", ""
		}
		const lacks = ", and eval.final.suites has no suite of the store"
		help := "exp suite add NAME FILE makes a suite of a file, and eval.final.suites names it"
		switch {
		case slices.Contains(eval.Ways(), f.Likelihood):
			return "eval.final.likelihood compares options of suites" + lacks, help
		case f.Shots != nil && *f.Shots > 0:
			return "eval.final.shots puts examples before problems of suites" + lacks, help
		}
		return "", ""
	}}
}

// asksOnce checks that a prompt has the problem in one place.
func asksOnce() check {
	return check{[]string{"eval.final.prompt"}, func(r *Run) (string, string) {
		if n := strings.Count(r.Eval.Final.Prompt, ProblemMark); n > 1 {
			return fmt.Sprintf("eval.final.prompt has %s %d times", ProblemMark, n), "name the problem's place once"
		}
		return "", ""
	}}
}

// hasSplit checks that a suite of the run's own data has data.
func hasSplit(suite string, split func(r *Run) Split) check {
	source := "data." + suite + ".source"
	return check{[]string{"eval.final.suites", source}, func(r *Run) (string, string) {
		if slices.Contains(r.Eval.Final.Suites, suite) && split(r).Source == None {
			return fmt.Sprintf("eval.final.suites has %s, but %s is none", suite, source),
				fmt.Sprintf("give data.%s a source, or leave the suite out", suite)
		}
		return "", ""
	}}
}

// greedy checks that several completions of a problem can differ.
func greedy(block string, values func(r *Run) (n int, temperature float64)) check {
	return check{[]string{block + ".temperature", block + ".n"}, func(r *Run) (string, string) {
		if n, temperature := values(r); n > 1 && temperature == 0 {
			return fmt.Sprintf("%s.temperature is 0, so all %d completions of a problem are the same", block, n),
				"n: 1, or a temperature above 0"
		}
		return "", ""
	}}
}

// anySource stands for the data sets of validation problems, which name verl's metrics.
const anySource = "*"

// Metrics returns the names of the metrics that validations may have, sorted. kinds are those of
// a mixed task's problems, sources their data sets; turns says that completions may have several.
func (o Online) Metrics(kinds, sources []string, turns bool) []string {
	v := stat.Validation{Variables: []stat.Variable{{Name: "reward"}, {Name: "acc"}}}
	for _, source := range sources {
		for range o.N {
			v.Source, v.Problem, v.Answer = append(v.Source, source), append(v.Problem, source), append(v.Answer, "")
			if turns {
				v.Turns = append(v.Turns, 1)
			}
			for i := range v.Variables {
				v.Variables[i].Values = append(v.Variables[i].Values, 0)
			}
		}
	}
	var names []string
	for _, m := range v.Metrics(stat.SubsetDraws{Draws: 1}) {
		names = append(names, m.Name)
	}
	for _, d := range eval.Definitions([]int{o.N}) {
		names = append(names, "val/"+d.Name)
	}
	for _, kind := range kinds {
		names = append(names, "val/"+eval.PassPrefix+kind, "val/"+eval.RewardPrefix+kind)
	}
	slices.Sort(names)
	return names
}

// unknownBest returns why validations cannot have the metric that chooses the weights, and advice. It takes any name
// of a data set.
func (o Online) unknownBest(kinds []string) (message, help string) {
	if !o.Chooses() {
		return "", ""
	}
	name, _ := o.BestMetric()
	known := o.Metrics(kinds, []string{anySource}, true)
	for _, k := range known {
		before, after, verl := strings.Cut(k, anySource)
		if name == k || verl && len(name) > len(before)+len(after) && strings.HasPrefix(name, before) &&
			strings.HasSuffix(name, after) {
			return "", ""
		}
	}
	help = "known are " + strings.ReplaceAll(strings.Join(known, ", "), anySource, "DATA_SOURCE")
	if near := spelling.Nearest(name, known); near != "" {
		help = fmt.Sprintf("did you mean %q?", near)
	}
	return fmt.Sprintf("eval.online.best: validations have no metric %s", name), help
}
