package arch

import (
	"path"
	"slices"
	"strings"
)

// modulePath starts each of our import paths.
const modulePath = "exp"

// ours returns the folder of a package of this module.
func ours(importPath string) (dir string, ok bool) {
	if importPath == modulePath {
		return ".", true
	}
	return strings.CutPrefix(importPath, modulePath+"/")
}

func within(dir, root string) bool { return dir == root || strings.HasPrefix(dir, root+"/") }

func withinAny(dir string, roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return within(dir, r) })
}

// rank orders the layers; each imports lower ones. kernels and sandbox stand next to
// each other.
func rank(layer string) int {
	order := [][]string{{"kernels", "sandbox"}, {"train"}, {"eval"}, {"harness"}, {"reports"}, {"cmd"}}
	return slices.IndexFunc(order, func(same []string) bool { return slices.Contains(same, layer) })
}

// graderRank orders the parts of the grader of mathematics; each imports lower ones and nothing else of ours. It is
// -1 for other folders.
func graderRank(dir string) int {
	order := [][]string{{"pattern"}, {"formula", "wording"}, {"latex"}, {"extract"}, {"."}}
	return slices.IndexFunc(order, func(same []string) bool {
		return slices.ContainsFunc(same, func(part string) bool { return path.Join("eval/grade", part) == dir })
	})
}

// forbidden says why folder from may not import folder to, "" if it may:
//
//	kernels, sandbox ← train ← eval ← harness ← reports ← cmd
//
// with experiments apart, and the narrower rules below. "." is the module's root.
func forbidden(from, to string) string {
	layer, target := strings.Split(from, "/")[0], strings.Split(to, "/")[0]
	switch {
	case from == ".":
		return "the module's root imports nothing of ours"
	case to == ".":
		if layer != "harness" {
			return "only harness reads the embedded sources"
		}
	case within(from, "train/rollout") || within(from, "train/rl"):
		if !within(to, from) {
			return "train/rollout and train/rl import nothing of ours"
		}
	case graderRank(from) >= 0:
		if n := graderRank(to); n < 0 || n >= graderRank(from) {
			return "the grader's parts import lower ones only: pattern <- formula, wording <- latex <- extract <- grade"
		}
	case within(from, "cmd/exp/cli"):
		if !slices.Contains([]string{"cmd/exp/cli", "cmd/exp/term", "experiments/quantity", "experiments/spelling", "experiments/store"}, to) {
			return "the frame of the commands imports its screen, the store and what they are made of, and nothing else of ours"
		}
	case layer == target:
	case layer == "experiments":
		return "experiments imports nothing of ours but itself"
	case target == "experiments":
		if !slices.Contains([]string{"harness", "reports", "cmd"}, layer) {
			return "experiments is imported by harness, reports and cmd only"
		}
	case rank(layer) < 0 || rank(target) < 0:
		return "no such layer"
	case rank(target) == rank(layer):
		return "sideways only inside a folder"
	case rank(target) > rank(layer):
		return "backwards: kernels, sandbox <- train <- eval <- harness <- reports <- cmd"
	case layer == "train" && target == "sandbox":
		return "train knows no sandbox"
	case layer == "eval" && target == "train" && to != "train/rollout":
		return "eval imports only train/rollout from train"
	case layer == "cmd" && graderRank(to) >= 0:
		return "commands grade through eval/answers, eval/task and harness"
	case layer == "reports" && !slices.Contains([]string{"eval", "eval/stat", "harness/config", "harness/metric"}, to):
		return "reports read experiments, eval, eval/stat, harness/config and harness/metric, nothing that trains"
	}
	return ""
}
