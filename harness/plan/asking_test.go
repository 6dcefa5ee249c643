package plan

import (
	"fmt"
	"strings"
	"testing"

	"exp/eval"
	"exp/eval/suite"
	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/stage"
)

// The settings of an evaluation say how its suite is asked, whoever decides it, and nothing that has no effect. They
// have not changed for a suite that is asked as before asking was a choice.
func TestAskingInIDs(t *testing.T) {
	examples := "dev"
	of := func(own suite.Asking, sets ...string) (gen, score string, protocol ident.Digest) {
		t.Helper()
		r, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: append(sets, "eval.final.suites=[arc,test]")})
		if err != nil {
			t.Fatal(err)
		}
		s := stage.Suite{Name: "arc", Digest: ident.Sum([]byte("arc")), Graders: []string{"exp"}, Asking: own}
		if s.AskingOf(&r.Run).Shots > 0 {
			s.Examples = &stage.Suite{Name: "dev", Digest: ident.Sum([]byte(examples))}
		}
		p := &Run{Config: r, Suites: []stage.Suite{s}}
		p.Stages = []Stage{{Kind: config.EvalGen, Label: "arc"}, {Kind: config.EvalScore, Label: "arc"}}
		if protocol, err = p.Protocol("arc"); err != nil {
			t.Fatal(err)
		}
		plain, err := p.Protocol("test")
		if err != nil {
			t.Fatal(err)
		}
		if want, err := ident.Hash("exp/protocol/1", ownProtocol(r)); err != nil || plain != want {
			t.Errorf("%v: the run's own data has another protocol", sets)
		}
		a, err := ident.Hash("gen", p.Params(0))
		if err != nil {
			t.Fatal(err)
		}
		b, err := ident.Hash("score", p.Params(1))
		if err != nil {
			t.Fatal(err)
		}
		// exp verify reads from the record that something is turned off.
		asked, recorded := s.AskingOf(&r.Run), p.Params(0)
		if own.Likelihood != "" && asked.Likelihood == "" && recorded[likelihoodKey] != config.LikelihoodOff ||
			own.Shots > 0 && asked.Shots == 0 && recorded[shotsKey] != int64(0) ||
			own.Description != "" && asked.Description == "" && recorded[descriptionKey] != config.None {
			t.Errorf("%v: the record does not say that likelihoods, examples or a description are off: %v", sets, recorded)
		}
		again, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: append(sets, "eval.final.suites=[arc]",
			fmt.Sprintf("%s=%q", promptKey, recorded[promptKey]))})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.AskingOf(&again.Run); got != asked {
			t.Errorf("%v: with the recorded prompt it is asked as %+v, not as %+v", sets, got, asked)
		}
		for path := range recorded {
			if v, _ := p.Params(0)[likelihoodKey].(string); v == eval.ByOption && samplingOnly(path) {
				t.Errorf("%v: %s has no effect", sets, path)
			}
		}
		return a.String(), b.String(), protocol
	}
	gen, score, protocol := of(suite.Asking{})
	if g, s, p := of(suite.Asking{}, "eval.final.truncate=left"); g == gen || s != score || p == protocol {
		t.Error("how prompts are cut changes the wrong ids")
	}
	same := func(what string, own suite.Asking, sets ...string) {
		t.Helper()
		if g, s, p := of(own, sets...); g != gen || s != score || p != protocol {
			t.Errorf("%s changes an id: %t %t %t", what, g != gen, s != score, p != protocol)
		}
	}
	same("off", suite.Asking{}, "eval.final.likelihood=off")
	same("no examples", suite.Asking{}, "eval.final.shots=0")
	same("no prompt and no description", suite.Asking{}, "eval.final.prompt=none", "eval.final.description=none")
	same("a suite's prompt that is the problem", suite.Asking{Prompt: config.ProblemMark})
	shown := suite.Asking{Likelihood: eval.ByOption, Shots: 2, ShotsSuite: "dev"}
	sets := []string{"eval.final.likelihood=option", "eval.final.shots=2", "eval.final.shots_suite=dev"}
	was := gen + score + protocol.String()
	gen, score, protocol = of(shown)
	if gen+score+protocol.String() == was {
		t.Error("likelihoods change no id")
	}
	same("the configuration instead of the suite", suite.Asking{}, sets...)
	same("a temperature", shown, "eval.final.temperature=0.5", "eval.final.n=2", "eval.final.pass_k=[1]")
	worded := shown
	worded.Prompt, worded.Description = "Q {problem}", "D"
	own, _, ownProtocol := of(worded)
	if own == gen || ownProtocol == protocol {
		t.Error("a suite's prompt and description change no id")
	}
	if g, _, p := of(worded, "eval.final.prompt=none", "eval.final.description=none"); g == own || p == ownProtocol {
		t.Error("without the suite's prompt and description it has the same id")
	}
	if g, _, p := of(shown, "eval.final.shots=1"); g == gen || p == protocol {
		t.Error("the number of examples changes no id")
	}
	examples = "other examples"
	if _, _, p := of(shown); p == protocol {
		t.Error("other examples have the same protocol")
	}
	examples = "dev"
	for what, set := range map[string]string{"sampling": "likelihood=off", "no examples": "shots=0", "a description": "description=On sums."} {
		if g, _, p := of(shown, "eval.final."+set); g == gen || p == protocol {
			t.Errorf("%s changes no id", what)
		}
	}
}

// The problems that examples are taken from enter the evaluation's id.
func TestExamplesAreInputs(t *testing.T) {
	r, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: []string{"eval.final.suites=[arc]"}})
	if err != nil {
		t.Fatal(err)
	}
	dev := ident.Sum([]byte("dev"))
	asked := stage.Suite{Name: "arc", Digest: ident.Sum([]byte("arc")), Graders: []string{"exp"}, Examples: &stage.Suite{Name: "dev", Digest: dev},
		Asking: suite.Asking{Shots: 1, ShotsSuite: "dev"}}
	p, err := New(r, 0, "cpu/fma", nil, asked)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Stages {
		if got := s.Outside[stage.RoleExamples]; (got == dev) != (s.Kind == config.EvalGen) {
			t.Errorf("%s reads the examples %v", s.Name(), got)
		}
	}
}

// ownProtocol returns the settings of evaluations of the run's own data: those without the keys that came later.
func ownProtocol(r *config.Resolved) map[string]any {
	settings := r.Protocol()
	if settings[promptKey] == config.None {
		settings[promptKey] = config.ProblemMark
	}
	for path := range settings {
		for _, name := range []string{"likelihood", "shots", "description", "truncate"} {
			if strings.HasPrefix(path, "eval.final."+name) {
				delete(settings, path)
			}
		}
	}
	return settings
}
