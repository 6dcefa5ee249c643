package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/experiments/store"
	"exp/harness/stage"
)

// A run on mathematics in another program's layout, from a pretrained folder: rewards of
// training and verdicts of the evaluation come from the grader that the
// configuration names.
func TestMathRun(t *testing.T) {
	l := newLab(t)
	first, _ := l.execute(l.plan(0))
	var b strings.Builder
	for i := 2; i < 10; i++ {
		for j := 2; j < 6; j++ {
			fmt.Fprintf(&b, "{\"problem\":\"%d+%d=\",\"answer\":%d.0}\n", i, j, i+j)
		}
	}
	data := filepath.Join(t.TempDir(), "sums.jsonl")
	if err := os.WriteFile(data, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	sets := []string{"name=math", "task={kind: math, math: {grader: math_reward}}", "tokenizer.kind=model", "sft.steps=0", "train.steps=2", "reward={correct: 2, wrong: -3}",
		"model={init: pretrained, base: " + filepath.Join(l.db.RunDir(first.Run.RID), stage.MergedDir) + "}"}
	for _, split := range []string{"train", "val", "test"} {
		sets = append(sets, fmt.Sprintf("data.%s={source: %s, size: 0}", split, data))
	}
	res, _ := l.execute(l.plan(0, sets...))
	for _, scope := range []string{"train", "eval"} {
		samples, err := l.db.Samples(t.Context(), res.Run.ID, store.SampleQuery{Scope: scope})
		if err != nil || len(samples) == 0 {
			t.Fatalf("%s: %d samples, %v", scope, len(samples), err)
		}
		for _, s := range samples {
			// The model knows no \boxed{}: this grader accepts nothing it can write.
			if s.Verdict == nil || s.Verdict.Reason != "no box" || scope == "train" && s.Reward != -3 {
				t.Fatalf("%s: reward %v, %+v", scope, s.Reward, s.Verdict)
			}
		}
	}
}
