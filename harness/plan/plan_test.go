package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"exp/experiments/ident"
	"exp/harness/config"
)

func newPlan(t *testing.T, seed int64, sets ...string) *Run {
	t.Helper()
	r, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	sources, err := Sources()
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(r, seed, "cpu/fma", sources)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func names(p *Run) []string {
	var out []string
	for _, s := range p.Stages {
		out = append(out, s.Name())
	}
	return out
}

func TestStages(t *testing.T) {
	got := strings.Join(names(newPlan(t, 0)), " ")
	if want := "prepare init sft train merge eval.gen[test@start] eval.score[test@start] eval.gen[test] eval.score[test]"; got != want {
		t.Errorf("stages %s\nwant   %s", got, want)
	}
	got = strings.Join(names(newPlan(t, 0, "sft.steps=0", "eval.final.suites=[test,val]")), " ")
	if want := "prepare init train merge eval.gen[test] eval.score[test] eval.gen[val] eval.score[val]"; got != want {
		t.Errorf("without sft %s\nwant        %s", got, want)
	}
}

// Stage ids depend on the inputs' digests, the keys that the kind reads and the
// seed; inputs that stand aside do not count.
func TestSID(t *testing.T) {
	p := newPlan(t, 3)
	fake := func(stage int, role string) (ident.Digest, bool) {
		return ident.Sum([]byte(fmt.Sprint(stage, role))), true
	}
	sid := func(p *Run, i int, output func(int, string) (ident.Digest, bool)) ident.Digest {
		hashed, all, ok := p.Inputs(i, output)
		if !ok || len(all) < len(hashed) {
			t.Fatalf("inputs of %s: %v, %v", p.Stages[i].Name(), hashed, all)
		}
		d, err := p.SID(i, hashed)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	train := slices.IndexFunc(p.Stages, func(s Stage) bool { return s.Kind == config.Train })
	base := sid(p, train, fake)
	other := func(role string) func(int, string) (ident.Digest, bool) {
		return func(stage int, r string) (ident.Digest, bool) {
			if r == role {
				return ident.Sum([]byte("other")), true
			}
			return fake(stage, r)
		}
	}
	if sid(p, train, other("weights")) == base || sid(p, train, other("problems/train")) == base {
		t.Error("an input does not change the id of the train stage")
	}
	if sid(p, train, other("problems/val")) != base {
		t.Error("the problems of the evaluation during training change the id of the train stage")
	}
	chosen := newPlan(t, 3, "eval.online.best=val/pass@1")
	if sid(chosen, train, other("problems/val")) == sid(chosen, train, fake) || sid(chosen, train, fake) == base {
		t.Error("problems that choose the weights do not change the id of the train stage, or their metric does not")
	}
	if sid(newPlan(t, 4), train, fake) == base {
		t.Error("the seed does not change the id of the train stage")
	}
	if sid(newPlan(t, 3, "eval.final.n=5", "eval.final.pass_k=[1]", "compute.threads=7"), train, fake) != base {
		t.Error("the protocol of the evaluation changes the id of the train stage")
	}
	if sid(newPlan(t, 3, "train.optim.lr=1e-4"), train, fake) == base {
		t.Error("the learning rate does not change the id of the train stage")
	}
	sft := slices.IndexFunc(p.Stages, func(s Stage) bool { return s.Kind == config.SFT })
	if sid(newPlan(t, 3, "sft.data_size=16"), sft, fake) == sid(p, sft, fake) {
		t.Error("the number of problems to learn from does not change the id of the sft stage")
	}
	for i := range p.Stages {
		before := p.Stages[i].Kind == config.Prepare || p.Stages[i].Kind == config.Init || p.Stages[i].Kind == config.SFT
		if same := sid(p, i, fake) == sid(newPlan(t, 9), i, fake); before && !same {
			t.Errorf("%s depends on the run's seed", p.Stages[i].Name())
		}
	}
	// The label of an evaluation is its suite, also of a recorded stage.
	key := func() ident.Stage {
		return ident.Stage{Kind: "eval.gen", Params: map[string]any{"eval.final.n": int64(4)}, Numerics: "cpu/fma"}
	}
	labelled, err := StageID(key(), "test")
	bare, errBare := StageID(key(), "")
	want := key()
	want.Params["suite"] = "test"
	if d, errWant := want.SID(); errors.Join(err, errBare, errWant) != nil || labelled != d || labelled == bare {
		t.Errorf("with a label the id is %v, want %v; without it %v", labelled, d, bare)
	}
	if _, _, ok := p.Inputs(train, func(int, string) (ident.Digest, bool) { return ident.Digest{}, false }); ok {
		t.Error("inputs that are not there yet are ok")
	}
}

func TestFusingIsSeen(t *testing.T) {
	if got := Numerics("cpu/fma"); fuses() != (got != "cpu/fma") {
		t.Errorf("Numerics = %s, fuses %v", got, fuses())
	}
}
