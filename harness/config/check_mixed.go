package config

import (
	"fmt"
	"maps"
	"slices"
)

func mixedChecks() []check {
	list := []check{{[]string{"task.mixed.kinds", "task.mixed.generate.train"}, func(r *Run) (string, string) {
		if len(r.Task.Kinds()) == 0 {
			return "task.mixed.kinds is empty",
				"give each data source a kind: {openai/gsm8k: math, \"*\": prompts}, or generate problems: " +
					"task.mixed.generate.train: {countdown: 2000}"
		}
		return "", ""
	}}, {[]string{"task.mixed.kinds"}, func(r *Run) (string, string) {
		kinds := r.Task.Mixed.Kinds
		for _, name := range slices.Sorted(maps.Keys(kinds)) {
			kind, _ := kinds[name].(string)
			switch {
			case slices.Contains(MixedParts(), kind):
			case slices.Contains(GeneratedParts(), kind):
				return fmt.Sprintf("task.mixed.kinds gives %q the kind %s, whose problems are not read but generated",
						name, kind), "task.mixed.generate.train: {" + kind + ": 2000} generates some; rows are of " +
						either(MixedParts())
			case taskNamed(kind).name != "":
				return fmt.Sprintf("task.mixed.kinds gives %q the kind %s, whose problems have a run of their own",
					name, kind), "rows of a mixed task are of " + either(MixedParts())
			default:
				return fmt.Sprintf("task.mixed.kinds gives %q the kind %v", name, kinds[name]),
					"a kind is " + either(MixedParts())
			}
		}
		return "", ""
	}}}
	for _, split := range []string{"train", "val", "test"} {
		list = append(list, generateChecks(split)...)
	}
	keys := []string{"eval.online.problems", "task.mixed.generate.val"}
	return append(list, check{keys, func(r *Run) (string, string) {
		if have := r.Problems("val"); have > 0 && r.Eval.Online.Problems > have {
			key := "task.mixed.generate.val"
			switch {
			case r.GeneratedProblems("val") == 0:
				key = "data.val.size"
			case r.Data.Val.Source != Generated:
				key = "data.val.size and " + key
			}
			return fmt.Sprintf("eval.online.problems (%d) is above %s (%d)", r.Eval.Online.Problems, key, have),
				"0 takes all"
		}
		return "", ""
	}})
}

// generateChecks checks the problems that a mixed task makes for a split.
func generateChecks(split string) []check {
	key, source := "task.mixed.generate."+split, "data."+split+".source"
	return []check{{[]string{key}, func(r *Run) (string, string) {
		made := r.Task.Mixed.Generate.of(split)
		for _, kind := range slices.Sorted(maps.Keys(made)) {
			n, whole := made[kind].(int64)
			switch {
			case slices.Contains(MixedParts(), kind):
				return fmt.Sprintf("%s has %s, whose problems are read from files", key, kind),
					"give their data source or file the kind in task.mixed.kinds; generated are " +
						either(GeneratedParts())
			case !slices.Contains(GeneratedParts(), kind):
				return fmt.Sprintf("%s has %s, and nothing generates such problems", key, kind),
					"generated are " + either(GeneratedParts())
			case !whole || n < 1:
				return fmt.Sprintf("%s.%s is %v, not a number of problems", key, kind, made[kind]),
					"a whole number from 1; leave the kind out for none"
			}
		}
		return "", ""
	}}, {[]string{key, source}, func(r *Run) (string, string) {
		n, from := r.GeneratedProblems(split), r.Data.split(split).Source
		switch {
		case n > 0 && from == None:
			return fmt.Sprintf("%s has %d problems, but %s is none", key, n, source),
				source + ": generated, or a file whose problems they join"
		case n == 0 && from == Generated:
			return fmt.Sprintf("%s is generated, but %s is empty", source, key),
				"say how many problems of each kind, " + key + ": {countdown: 2000}, or give a file"
		case from != Generated && from != None && len(r.Task.Mixed.Kinds) == 0:
			return fmt.Sprintf("%s is a file, but task.mixed.kinds gives its rows no kind", source),
				"give each data source a kind: {openai/gsm8k: math, \"*\": prompts}"
		}
		return "", ""
	}}}
}
