package run

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/plan"
	"exp/harness/stage"
	"exp/train/rollout"
)

// generatedSets make the smoke recipe train on problems of two kinds, and score these and a third one.
func generatedSets(more ...string) []string {
	sets := []string{"name=mixed", "task={kind: mixed, mixed: {generate: {train: {countdown: 40, words: 24}, " +
		"val: {words: 8}, test: {countdown: 6, words: 4, stories: 2}}}, words: {largest_number: 9, steps: 1}, " +
		"countdown: {min_numbers: 2, max_numbers: 3, largest_number: 9, largest_target: 20}, stories: {min_steps: 1, max_steps: 1}}",
		"data={train: {source: generated}, val: {source: generated}, test: {source: generated}, max_prompt_tokens: 400}",
		"model.arch.max_positions=500", "compute.micro_batch_tokens=1024"}
	return append(sets, more...)
}

// problemsOf returns the problems of a run by the role that they have.
func (l *lab) problemsOf(c *config.Resolved, run int64, role string) []rollout.Problem {
	l.t.Helper()
	env := &stage.Env{Config: c, Blobs: l.db.Blobs}
	list, err := stage.Problems(env, stage.Inputs{role: l.outputs(run)["prepare[]/"+role]}, role)
	if err != nil {
		l.t.Fatal(err)
	}
	return list
}

// A mixed run needs no files: each kind makes the problems that it makes alone, each has its own metrics, and the record
// verifies.
func TestGeneratedMixture(t *testing.T) {
	l := newLab(t)
	p := l.plan(0, generatedSets()...)
	res, q := l.execute(p)
	if len(q.warnings) != 0 {
		t.Errorf("warnings %q", q.warnings)
	}
	alone := l.plan(0, "data.train.size=40", "data.test.size=6")
	one, _ := l.execute(alone)
	for role, counts := range map[string]map[string]int{config.RoleTrain: {"countdown": 40, "words": 24},
		config.RoleVal: {"words": 8}, config.RoleTest: {"countdown": 6, "words": 4, "stories": 2}} {
		got := map[string]int{}
		var countdown []rollout.Problem
		for _, x := range l.problemsOf(p.Config, res.Run.ID, role) {
			got[x.Kind]++
			if x.Kind == "countdown" {
				x.Kind = ""
				countdown = append(countdown, x)
			}
		}
		if d := cmp.Diff(counts, got); d != "" {
			t.Errorf("%s (-want +got)\n%s", role, d)
		}
		if role == config.RoleVal {
			continue
		}
		if d := cmp.Diff(l.problemsOf(alone.Config, one.Run.ID, role), countdown); d != "" {
			t.Errorf("%s: Countdown is not as in a run of its own (-alone +mixed)\n%s", role, d)
		}
	}
	curves, err := l.db.Metrics(t.Context(), res.Run.ID, "train/*", 0, 9)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, c := range curves {
		have = append(have, c.Name)
	}
	for _, name := range []string{"train/accuracy/countdown", "train/accuracy/words", "train/score/words"} {
		if !slices.Contains(have, name) {
			t.Errorf("no metric %s among %q", name, have)
		}
	}
	evals, err := l.db.Evals(t.Context(), res.Run.ID)
	values := map[string]float64{}
	for _, e := range evals {
		values[e.Metric] = e.Value
	}
	want := (6*values["pass@1/countdown"] + 4*values["pass@1/words"] + 2*values["pass@1/stories"]) / 12
	if d := values["pass@1"] - want; err != nil || d > 1e-12 || d < -1e-12 {
		t.Errorf("final scores %v, %v", values, err)
	}
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK || len(v.Findings) != 0 {
		t.Errorf("verification: %+v", v)
	}

	other := newLab(t) // nothing is cached
	small, _ := other.execute(other.plan(0, generatedSets("compute.micro_batch_tokens=600")...))
	if small.Run.RID != res.Run.RID || small.Run.Chain != res.Run.Chain || res.Run.Chain.IsZero() {
		t.Errorf("micro-batches changed the chain: %v and %v", small.Run.Chain.Short(), res.Run.Chain.Short())
	}
	for _, more := range []string{"task.mixed.generate.test.words=5", "data.seed=1"} {
		if p := l.plan(0, generatedSets(more)...); p.RID == res.Run.RID {
			t.Errorf("%s does not change the id", more)
		}
	}
	again, _ := l.execute(l.plan(0, generatedSets("task.mixed.generate.test.words=5")...))
	if train, _ := l.db.Stages(t.Context(), again.Run.ID); !slices.ContainsFunc(train, func(s store.Stage) bool {
		return s.Kind == string(config.Train) && s.Status == store.Cached
	}) {
		t.Error("other test problems train again")
	}
}

// A mixed run that died resumes to the same bits.
func TestGeneratedMixtureResumes(t *testing.T) {
	l, settings := died(t, generatedSets()...)
	whole := newLab(t)
	want, _ := whole.execute(whole.plan(0, settings...))
	got, _ := l.execute(l.plan(0, settings...))
	if got.Run.Chain != want.Run.Chain || got.Run.Steps != 6 {
		t.Errorf("%d steps, chain %s; want 6, %s", got.Run.Steps, got.Run.Chain.Short(), want.Run.Chain.Short())
	}
	sameOutputs(t, l.outputs(got.Run.ID), whole.outputs(want.Run.ID))
}

// Generated problems join the rows of a file. Counts and warnings about the file leave them out.
func TestGeneratedNextToFiles(t *testing.T) {
	l := newLab(t)
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	var rows strings.Builder
	for i := range 6 {
		fmt.Fprintf(&rows, `{"data_source": "sums", "id": "m%d", "prompt": "Sum %d é", "answer": "%[1]d", "target": "%[1]d"}`+"\n",
			i%5, i%5)
	}
	if err := os.WriteFile(path, []byte(rows.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	sets := []string{"name=mixed", "task={kind: mixed, mixed: {kinds: {sums: math}, generate: {train: {words: 10}, " +
		"test: {words: 5}}}, math: {grader: exp}, words: {largest_number: 9, steps: 1}}", "data.max_prompt_tokens=200",
		"model.arch.max_positions=300", "compute.micro_batch_tokens=1024",
		fmt.Sprintf("data={train: {source: %s, size: 0}, val: {source: none, size: 0}, test: {source: %[1]s, size: 0}}", path),
		"eval.online.every_steps=0", "sft.problems_per_step=8", "train={steps: 2, prompts_per_step: 15, prompts_per_update: 5}"}
	p := l.plan(0, sets...)
	res, q := l.execute(p)
	got := map[string]int{}
	for _, x := range l.problemsOf(p.Config, res.Run.ID, config.RoleTrain) {
		got[x.Kind]++
	}
	if got["math"] != 5 || got["words"] != 10 {
		t.Errorf("problems %v", got)
	}
	all := strings.Join(q.warnings, "\n")
	if !strings.Contains(all, "data.train: 6 rows give 5 problems; left out: 1 copies of another") ||
		!strings.Contains(all, "of 5 problems, data.train holds word for word 5 (m0, m1, m2, m3, m4)") {
		t.Errorf("warnings %q", q.warnings)
	}
	_, err := plan.New(smoke(t, append(sets, "train={prompts_per_step: 20, prompts_per_update: 20}")...), 0, l.be.Class(),
		l.sources)
	if err == nil || !strings.Contains(err.Error(), "has 5 problems next to 10 generated ones, train.prompts_per_step asks for 20") {
		t.Errorf("too few problems: %v", err)
	}
}

// The recipe of several kinds runs, and each kind is trained on and scored.
func TestMixedRecipe(t *testing.T) {
	l := newLab(t)
	const rows = "../../configs/instructions/"
	p, err := plan.New(recipe(t, "mixed_cpu.yaml", "data.train.source="+rows+"names.jsonl", "data.test.source="+rows+
		"names_test.jsonl", "sft.steps=2", "train.steps=2", "eval.online.every_steps=1", "eval.final.n=1"), 0, l.be.Class(),
		l.sources)
	if err != nil {
		t.Fatal(err)
	}
	res, q := l.execute(p)
	if len(q.warnings) != 0 {
		t.Errorf("warnings %q", q.warnings)
	}
	for role, want := range map[string]map[string]int{
		config.RoleTrain: {"countdown": 1200, "words": 1200, "instructions": 400},
		config.RoleVal:   {"countdown": 32, "words": 32},
		config.RoleTest:  {"countdown": 64, "words": 64, "instructions": 64},
	} {
		got := map[string]int{}
		for _, x := range l.problemsOf(p.Config, res.Run.ID, role) {
			got[x.Kind]++
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got)\n%s", role, d)
		}
	}
	evals, err := l.db.Evals(t.Context(), res.Run.ID)
	scored := map[string]bool{}
	for _, e := range evals {
		scored[e.Metric] = true
	}
	for _, kind := range p.Config.Run.Task.Kinds() {
		if !scored["pass@1/"+kind] || !scored["reward_mean/"+kind] {
			t.Errorf("%s has no score: %v, %v", kind, scored, err)
		}
	}
}
