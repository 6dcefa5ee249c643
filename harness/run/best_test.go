package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"exp/eval"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/stage"
)

// validated are settings of runs that validate at steps 0, 2, 4 and 6. The shares of answers with the form are there
// 0.375, 0.5, 0.3125 and 0.3125, and no answer is right.
var validated = []string{"train.steps=6", "eval.online.every_steps=2", "eval.online.n=2", "checkpoint.every_steps=2"}

// bestOf returns the best validation that the record of a run's training names.
func (l *lab) bestOf(run int64) (b *stage.Best) {
	l.t.Helper()
	stages, err := l.db.Stages(l.t.Context(), run)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, s := range stages {
		var result struct{ Best *stage.Best }
		if s.Kind != "train" || s.Status != store.Done {
			continue
		}
		if err := json.Unmarshal(s.Result, &result); err != nil {
			l.t.Fatal(err)
		}
		b = result.Best
	}
	return b
}

// The weights of the best validation are those of the run that ends there; of equal validations the first counts, and
// the start is one.
func TestBestValidation(t *testing.T) {
	for _, tt := range []struct {
		metric string
		step   int
		value  float64
	}{
		{"val/format_rate", 2, 0.5}, {"min:val/format_rate", 4, 0.3125}, {"val/length_mean", 6, 7.3125},
		{"val/pass@1", 0, 0}, // all are equal
	} {
		t.Run(tt.metric, func(t *testing.T) {
			l := startedLab(t)
			res, _ := l.execute(l.plan(0, append([]string{"eval.online.best=" + tt.metric}, validated...)...))
			got := l.outputs(res.Run.ID)
			want := stage.Best{Step: tt.step, Metric: strings.TrimPrefix(tt.metric, "min:"), Value: tt.value}
			if b := l.bestOf(res.Run.ID); b == nil || *b != want {
				t.Errorf("recorded as best: %+v, want %+v", b, want)
			}
			ends := []string{"train.steps=" + strconv.Itoa(tt.step), "name=short"}
			short, _ := l.execute(l.plan(0, append(validated[1:len(validated):len(validated)], ends...)...))
			weights := l.outputs(short.Run.ID)["train[]/weights"]
			if b := l.bestOf(short.Run.ID); b != nil {
				t.Errorf("a run that keeps its last weights recorded %+v", b)
			}
			if got["train[]/weights"] != weights || weights.IsZero() {
				t.Errorf("weights %s, want %s of step %d", got["train[]/weights"].Short(), weights.Short(), tt.step)
			}
			left, err := filepath.Glob(filepath.Join(l.db.RunDir(res.Run.RID), "ckpt", "train-*", "*best*"))
			if err != nil || len(left) != 0 {
				t.Errorf("%q were left, %v", left, err)
			}
		})
	}
}

// A run that died after its best validation finds its weights in the checkpoint, and so does one that extends it.
func TestBestValidationResumed(t *testing.T) {
	settings := append([]string{"eval.online.best=val/format_rate"}, validated...)
	whole := startedLab(t)
	want, _ := whole.execute(whole.plan(0, settings...))

	l, _ := died(t, settings...)
	got, q := l.execute(l.plan(0, settings...))
	if len(q.notes) == 0 || !strings.HasPrefix(q.notes[0], "checkpoint step 2 ok") || len(q.warnings) != 0 {
		t.Errorf("notes %q, warnings %q", q.notes, q.warnings)
	}
	sameOutputs(t, l.outputs(got.Run.ID), whole.outputs(want.Run.ID))
	if b := l.bestOf(got.Run.ID); b == nil || *b != *whole.bestOf(want.Run.ID) || b.Step != 2 {
		t.Errorf("best %+v, want %+v of step 2", b, whole.bestOf(want.Run.ID))
	}
	if v := l.verify(l.plan(0, settings...), VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("verified: %+v", v.Findings)
	}
	if v := l.verify(l.plan(0, settings...), VerifyOptions{Level: LevelPrefix, From: 4}); !v.OK {
		t.Errorf("verified from step 4: %+v", v.Findings)
	}

	l.options.Parent = &got.Run
	longer := append(settings[:len(settings):len(settings)], "train.steps=7", "name=longer")
	child, _ := l.execute(l.plan(0, longer...))
	another := startedLab(t)
	alone, _ := another.execute(another.plan(0, longer...))
	sameOutputs(t, l.outputs(child.Run.ID), another.outputs(alone.Run.ID))
	if b := l.bestOf(child.Run.ID); b == nil || *b != *another.bestOf(alone.Run.ID) {
		t.Errorf("best of the longer run %+v, want %+v", b, another.bestOf(alone.Run.ID))
	}
}

// A metric that validations lack ends the run before its first step.
func TestBestValidationUnknown(t *testing.T) {
	l := startedLab(t)
	q := &quiet{}
	_, err := l.try(context.Background(), l.plan(0, append([]string{"eval.online.best=val/acuracy"}, validated...)...), q)
	if err == nil || !strings.Contains(err.Error(), "no metric val/acuracy; they have val-aux/countdown/acc/std@2, ") ||
		!strings.Contains(err.Error(), " val/pass@1,") {
		t.Errorf("error %v", err)
	}
}

// Weights that another program changed while the run trained are not taken for the best.
func TestBestValidationChanged(t *testing.T) {
	l := startedLab(t)
	p := l.plan(0, append([]string{"eval.online.best=val/format_rate"}, validated...)...)
	q := &quiet{progress: func(_ string, done int) {
		if done != 6 {
			return
		}
		files, err := filepath.Glob(filepath.Join(l.db.RunDir(p.RID), "ckpt", "train-*", "best.safetensors"))
		if err != nil || len(files) != 1 {
			t.Errorf("files %q, %v", files, err)
			return
		}
		flip(t, files[0])
	}}
	if _, err := l.try(t.Context(), p, q); err == nil || !strings.Contains(err.Error(), "the weights of step 2, changed while the run trained") {
		t.Errorf("error %v", err)
	}
}

// Ranks keep the same weights as one process, also if one of them only samples.
func TestBestValidationOnRanks(t *testing.T) {
	l := startedLab(t)
	x := l.ranked(l.plan(0, append([]string{"eval.online.best=val/format_rate", "rollout.staleness=1"}, validated...)...),
		config.Train)
	x.same([]int{2, 3})
	x.same([]int{3}, "compute.rollout_ranks=1")
}

// A validation that cannot be graded ends a run whose weights it would choose, and is only told in others.
func TestBestValidationUngraded(t *testing.T) {
	dir := t.TempDir()
	program, data := filepath.Join(dir, "reward.sh"), filepath.Join(dir, "prompts.jsonl")
	var rows strings.Builder
	for i := range 12 {
		fmt.Fprintf(&rows, `{"prompt": "Say %d"}`+"\n", i)
	}
	for name, text := range map[string]string{
		program: `n=0
while read row; do
	n=$((1-n)); id=${row#*id\":\"}; answer='"score": 0.5'
	if [ $n = 0 ]; then answer='"error": "down"'; fi
	echo "{\"id\": \"${id%%\"*}\", $answer}"
done`,
		data: rows.String(),
	} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	sets := []string{"task={kind: prompts, prompts: {pass: 9}}", "tokenizer.kind=byte", "sft.steps=0", "train.steps=1",
		"algo.kind=grpo", "eval.final.suites=[]", "reward={kind: command, max_not_graded: 1, command: [sh, " + program + "]}"}
	for _, split := range []string{"train", "val", "test"} {
		sets = append(sets, fmt.Sprintf("data.%s={source: %s, size: 0}", split, data))
	}
	l := newLab(t)
	res, q := l.execute(l.plan(0, sets...))
	if !slices.ContainsFunc(q.warnings, func(w string) bool { return strings.Contains(w, "could not be graded") }) {
		t.Errorf("warnings %q of a run that goes on", q.warnings)
	}
	_, err := l.try(context.Background(), l.plan(0, append(sets, "eval.online.best=val/pass@1")...), &quiet{})
	var ungraded *eval.NotGradedError
	if !errors.As(err, &ungraded) || res.Run.Steps != 1 {
		t.Errorf("with eval.online.best: %v; without, %d steps", err, res.Run.Steps)
	}
}
