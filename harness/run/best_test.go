package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/fault"
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

// A data set that validations lack ends the run before its first step; other unknown names are refused with the
// configuration.
func TestBestValidationUnknown(t *testing.T) {
	l := startedLab(t)
	const best = "eval.online.best=val-core/countup/acc/best@2/mean"
	_, err := l.try(t.Context(), l.plan(0, append([]string{best}, validated...)...), &quiet{progress: func(_ string, done int) {
		t.Errorf("trained until step %d", done)
	}})
	if err == nil || !strings.Contains(err.Error(), "no metric val-core/countup/acc/best@2/mean; did you mean "+
		"val-core/countdown/acc/best@2/mean?") {
		t.Errorf("error %v", err)
	}
}

// Without any value in any validation the last weights count, and that is told.
func TestBestValidationWithoutValues(t *testing.T) {
	l := startedLab(t)
	res, q := l.execute(l.plan(0, append([]string{"eval.online.best=val/best@2"}, validated...)...)) // needs a scorer
	plain, _ := l.execute(l.plan(0, append([]string{"name=plain"}, validated...)...))
	got, want := l.outputs(res.Run.ID)["train[]/weights"], l.outputs(plain.Run.ID)["train[]/weights"]
	if got != want || l.bestOf(res.Run.ID) != nil {
		t.Errorf("weights %s and best %+v, want %s", got.Short(), l.bestOf(res.Run.ID), want.Short())
	}
	if len(q.warnings) != 5 || !strings.Contains(q.warnings[0], "val/best@2 has no value at step 0") ||
		!strings.Contains(q.warnings[4], "no value in any validation, so the last weights count") {
		t.Errorf("warnings %q", q.warnings)
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

// failing returns settings of a run that is rewarded by a program, which cannot grade validations while a file down
// exists.
func failing(t *testing.T) (down string, sets []string) {
	dir := t.TempDir()
	down = filepath.Join(dir, "down")
	program := filepath.Join(dir, "reward.sh")
	files := map[string]string{program: `while read row; do
	id=${row#*id\":\"}; text=${row#*prompt}; answer="\"score\": 0.$((${#text} % 10))"
	case $row in *Ask*) if [ -e "${0%/*}/down" ]; then answer='"error": "down"'; fi; esac
	echo "{\"id\": \"${id%%\"*}\", $answer}"
done`}
	sets = []string{"task={kind: prompts, prompts: {pass: 0.95}}", "tokenizer.kind=byte", "sft.steps=0", "train.steps=4",
		"eval.online.every_steps=2", "eval.online.n=1", "algo.kind=grpo", "eval.final.suites=[]",
		"checkpoint.every_steps=0", "reward={kind: command, command: [sh, " + program + "]}"}
	for split, verb := range map[string]string{"train": "Say", "val": "Ask", "test": "Test"} {
		data := filepath.Join(dir, split+".jsonl")
		for i := range 12 {
			files[data] += fmt.Sprintf(`{"prompt": "%s %d"}`+"\n", verb, i)
		}
		sets = append(sets, fmt.Sprintf("data.%s={source: %s, size: 0}", split, data))
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return down, sets
}

// create makes an empty file.
func create(t *testing.T, file string) {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
}

// best chooses by a metric that every validation has, and that is highest after step 2.
const best = "eval.online.best=val/reward_mean"

// A validation that cannot be graded ends a run whose weights it would choose. The run loses no step, and goes on with
// this validation. Other runs only tell it.
func TestBestValidationUngraded(t *testing.T) {
	down, sets := failing(t)
	l := newLab(t)
	create(t, down)
	_, q := l.execute(l.plan(0, append(sets, "name=plain")...))
	if len(q.warnings) != 3 || !strings.Contains(q.warnings[1], "8 of 8 samples could not be graded") {
		t.Errorf("warnings %q of a run that goes on", q.warnings)
	}
	sets = append(sets, best)
	_, err := l.try(t.Context(), l.plan(0, sets...), &quiet{})
	if err == nil || !strings.Contains(err.Error(), "eval.online.best needs the validation of step 0, which was not graded: 8 of 8") ||
		!strings.Contains(fault.Hint(err), "fix the cause and run again; eval.online.max_not_graded") {
		t.Fatalf("before training: %v\n%s", err, fault.Hint(err))
	}
	if err := os.Remove(down); err != nil {
		t.Fatal(err)
	}
	whole := newLab(t)
	want, _ := whole.execute(whole.plan(0, sets...))

	const never = -1
	for _, tt := range []struct{ after, step int }{{1, 2}, {0, 2}, {3, 4}, {0, 4}, {never, 4}} {
		if err := os.Remove(down); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if tt.after == 0 {
			create(t, down)
		}
		q := &quiet{progress: func(_ string, done int) {
			if done == tt.after && done > 0 {
				create(t, down)
			}
		}}
		res, err := l.try(t.Context(), l.plan(0, sets...), q)
		if tt.after == never {
			if err != nil {
				t.Fatal(err)
			}
			sameOutputs(t, l.outputs(res.Run.ID), whole.outputs(want.Run.ID))
			if b := l.bestOf(res.Run.ID); b == nil || b.Step != 2 || *b != *whole.bestOf(want.Run.ID) {
				t.Errorf("best %+v, want %+v", b, whole.bestOf(want.Run.ID))
			}
			if got, all := l.validations(res.Run.ID), whole.validations(want.Run.ID); !reflect.DeepEqual(got, all) {
				t.Errorf("validations %v, want %v", got, all)
			}
			if v := l.verify(l.plan(0, sets...), VerifyOptions{Level: LevelFull}); !v.OK {
				t.Errorf("verified: %+v", v.Findings)
			}
			if v := l.verify(l.plan(0, sets...), VerifyOptions{Level: LevelPrefix, From: 2}); !v.OK {
				t.Errorf("verified from step 2: %+v", v.Findings)
			}
			continue
		}
		var ungraded *stage.UnscoredError
		if !errors.As(err, &ungraded) || ungraded.Step != tt.step || res.Run.Steps != int64(tt.step) ||
			!strings.HasPrefix(fault.Hint(err), fmt.Sprintf("step %d is saved; fix the cause and run again, which goes on", tt.step)) {
			t.Fatalf("%+v: %v after %d steps\n%s; %q", tt, err, res.Run.Steps, fault.Hint(err), q.warnings)
		}
		l.options.Resume = true
	}
}

// validations returns the metrics of a run's validations, by step.
func (l *lab) validations(run int64) map[int64]map[string]float64 {
	l.t.Helper()
	curves, err := l.db.Metrics(l.t.Context(), run, "val*", 0, 100)
	if err != nil {
		l.t.Fatal(err)
	}
	all := map[int64]map[string]float64{}
	for _, c := range curves {
		for i, step := range c.Steps {
			if all[step] == nil {
				all[step] = map[string]float64{}
			}
			all[step][c.Name] = c.Values[i]
		}
	}
	if len(all) == 0 {
		l.t.Error("no validation is recorded")
	}
	return all
}

// Ranks save the step together, and go on with the validation together.
func TestBestValidationUngradedOnRanks(t *testing.T) {
	down, sets := failing(t)
	l := newLab(t)
	x := l.ranked(l.plan(0, append(sets, best, "train.steps=2")...), config.Train)
	whole, errs := x.on(1)
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	x.dir, x.stepped = t.TempDir(), func(step int64) {
		if step == 1 {
			create(t, down)
		}
	}
	first, errs := x.on(2)
	for rank, err := range errs {
		var ungraded *stage.UnscoredError
		if !errors.As(err, &ungraded) || !ungraded.Saved || ungraded.Step != 2 {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
	if err := os.Remove(down); err != nil {
		t.Fatal(err)
	}
	second, errs := x.on(2)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(whole, "\n")
	if end := lines[len(lines)-1]; !strings.HasSuffix(second, end) || strings.Contains(second, "Say") ||
		!strings.Contains(second, "start 2 [val") || !strings.HasPrefix(whole, strings.Split(first, "\n")[0]) {
		t.Errorf("first\n%s\nthen\n%s\nwant\n%s", first, second, whole)
	}
}
