package run

import (
	"os"
	"strings"
	"testing"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/plan"
	"exp/harness/stage"
)

// evaluated executes the smoke run with n completions of each of its 16 problems, and
// returns its stages, how many completions were sampled after training, and the digests
// of what the evaluation gave.
func (l *lab) evaluated(n string) (q *quiet, sampled int, outputs map[string]ident.Digest) {
	l.t.Helper()
	p := l.plan(0, "eval.final.n="+n)
	q = &quiet{}
	q.progress = func(at string, done int) {
		if at == "eval.gen[test]" {
			sampled = max(sampled, done)
		}
	}
	res, err := l.try(l.t.Context(), p, q)
	if err != nil {
		l.t.Fatal(err)
	}
	stages, err := l.db.Stages(l.t.Context(), res.Run.ID)
	if err != nil {
		l.t.Fatal(err)
	}
	outputs = map[string]ident.Digest{}
	for _, s := range stages {
		for _, o := range s.Outputs {
			outputs[s.Kind+"["+s.Label+"]/"+o.Role] = o.Digest // of the newest
		}
	}
	return q, sampled, outputs
}

const bothEvaluations = "eval.gen[test@start] eval.score[test@start] eval.gen[test] eval.score[test]"

// A growing evaluation samples only the missing completions, and equals one that had the
// final size from the start. A shrinking one samples nothing.
func TestGrowingEvaluation(t *testing.T) {
	fresh := startedLab(t)
	_, sampled, want := fresh.evaluated("16")
	if sampled != 16*16 {
		t.Fatalf("a fresh run sampled %d completions", sampled)
	}
	l := startedLab(t)
	_, sampled, small := l.evaluated("4")
	if sampled != 16*4 {
		t.Fatalf("a fresh run sampled %d completions", sampled)
	}
	q, sampled, got := l.evaluated("16")
	if executedStages(q) != bothEvaluations || sampled != 16*12 {
		t.Errorf("16 after 4: executed %s, sampled %d completions, want 192", executedStages(q), sampled)
	}
	sameOutputs(t, want, got)
	if q, sampled, again := l.evaluated("4"); executedStages(q) != "" || sampled != 0 {
		t.Errorf("4 again: executed %s", executedStages(q))
	} else if k := "eval.gen[test]/completions"; again[k] == small[k] && got[k] == small[k] {
		t.Error("4 completions and 16 are the same")
	}
	q, sampled, got = l.evaluated("7")
	if executedStages(q) != bothEvaluations || sampled != 0 {
		t.Errorf("7 after 16: executed %s, sampled %d completions", executedStages(q), sampled)
	}
	_, _, want = fresh.evaluated("7")
	sameOutputs(t, want, got)
}

// What was sampled with other settings, by other weights or by another program is not
// part of an evaluation that grows.
func TestGrowingOnlyTheSame(t *testing.T) {
	l := startedLab(t)
	l.execute(l.plan(0))
	q := &quiet{}
	sampled := 0
	q.progress = func(at string, done int) {
		if at == "eval.gen[test]" {
			sampled = max(sampled, done)
		}
	}
	for name, p := range map[string]*plan.Run{
		"another temperature": l.plan(0, "eval.final.n=8", "eval.final.temperature=0.7"),
		"another seed":        l.plan(1, "eval.final.n=8"),
	} {
		sampled = 0
		if _, err := l.try(t.Context(), p, q); err != nil {
			t.Fatal(err)
		}
		if sampled != 16*8 {
			t.Errorf("%s: sampled %d completions, want all 128", name, sampled)
		}
	}
	l.options.NoCache = true
	sampled = 0
	if _, err := l.try(t.Context(), l.plan(0, "eval.final.n=6"), q); err != nil {
		t.Fatal(err)
	}
	if sampled != 16*6 {
		t.Errorf("without the cache: sampled %d completions, want all 96", sampled)
	}
}

// Completions that were damaged since are sampled again, and it is said.
func TestGrowingFromDamaged(t *testing.T) {
	l := startedLab(t)
	_, _, small := l.evaluated("4")
	path := l.db.Blobs.Path(small["eval.gen[test]/completions"])
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 1
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	q, sampled, got := l.evaluated("8")
	if sampled != 16*8 || !strings.Contains(strings.Join(q.warnings, "\n"), "sampling all again") {
		t.Errorf("sampled %d completions, warnings %q", sampled, q.warnings)
	}
	_, _, want := startedLab(t).evaluated("8")
	sameOutputs(t, want, got)
}

// Another scorer, and other estimates of what was scored, score again and sample
// nothing.
func TestScorerChanges(t *testing.T) {
	l := startedLab(t)
	l.execute(l.plan(0))
	scored := "eval.score[test@start] eval.score[test]"
	if _, q := l.execute(l.plan(0, "eval.final.pass_k=[1,3]")); executedStages(q) != scored {
		t.Errorf("other pass@k: executed %s", executedStages(q))
	}
	code := l.sources[config.EvalScore]
	code.Digest = ident.Sum([]byte("a scorer that was changed"))
	l.sources[config.EvalScore] = code
	res, q := l.execute(l.plan(0))
	if executedStages(q) != scored {
		t.Errorf("another scorer: executed %s", executedStages(q))
	}
	samples, err := l.db.Samples(t.Context(), res.Run.ID, store.SampleQuery{Scope: "eval", Label: "test"})
	if err != nil || len(samples) != 16*4 {
		t.Errorf("%d samples, %v: scoring again adds none", len(samples), err)
	}
	if _, ok := l.outputs(res.Run.ID)["eval.gen[test]/"+stage.RoleCompletions]; !ok {
		t.Error("no completions")
	}
}

// Verdicts are recorded on the samples that were judged, although the same suite was
// sampled in another way since.
func TestVerdictsOfTheirSamples(t *testing.T) {
	l := startedLab(t)
	first, _ := l.execute(l.plan(0))
	l.execute(l.plan(0, "eval.final.temperature=0.2", "eval.final.n=6"))
	code := l.sources[config.EvalScore]
	code.Digest = ident.Sum([]byte("a scorer that was changed"))
	l.sources[config.EvalScore] = code
	l.execute(l.plan(0)) // judges the first again
	all, err := l.db.Samples(t.Context(), first.Run.ID, store.SampleQuery{Scope: "eval", Label: "test"})
	if err != nil || len(all) != 16*(4+6) {
		t.Fatalf("%d samples, %v", len(all), err)
	}
	home, judged := l.stageOf(first.Run.ID, "eval.gen").Home, map[bool]int{}
	for _, label := range []string{"test@start", "test"} {
		newest, err := l.db.NewestStage(t.Context(), first.Run.ID, "eval.gen", label)
		if err != nil || newest.Home == home {
			t.Errorf("the newest generation of %s is %d, %v", label, newest.Home, err)
		}
	}
	for _, s := range all {
		if s.Verdict == nil {
			t.Fatalf("sample %d of %s has no verdict", s.K, s.Item)
		}
		again := s.Verdict.Scorer.Digest == code.Digest
		if first := s.Stage == all[0].Stage; again != first {
			t.Errorf("sample %d of %s in stage %d has the verdict of scorer %s", s.K, s.Item, s.Stage, s.Verdict.Scorer.Digest.Short())
		}
		judged[again]++
	}
	if judged[true] != 16*4 || judged[false] != 16*6 {
		t.Errorf("judged again: %v", judged)
	}
}
