package stage

import (
	"slices"
	"strings"
	"testing"

	"exp/eval"
	"exp/eval/suite"
	"exp/harness/config"
)

// An option must fit behind its prompt.
func TestLongOption(t *testing.T) {
	options := []eval.Option{{Prompt: make([]int32, 5), Tokens: make([]int32, 2)}, {Prompt: make([]int32, 5), Tokens: make([]int32, 4)}}
	if err := longOption("arc", "p", options, 8); err == nil ||
		!strings.Contains(err.Error(), "problem p needs 9 positions (a prompt of 5 tokens and option B of 4), the model has 8") {
		t.Errorf("too long: %v", err)
	}
	if err := longOption("arc", "p", options, 9); err != nil {
		t.Error(err)
	}
}

// A configuration's settings go before the suite's own, and graders are of the way of asking.
func TestAskingOf(t *testing.T) {
	own := suite.Asking{Likelihood: eval.ByOption, Shots: 5, ShotsSuite: "dev", Description: "D", Prompt: "Q {problem}"}
	s := &Suite{Name: "arc", Graders: []string{"exp", "gpqa"}, Asking: own}
	bare := &Suite{Name: "arc", Graders: s.Graders}
	two, none := 2, 0
	for _, tt := range []struct {
		name    string
		s       *Suite
		set     func(f *config.Final)
		want    suite.Asking
		graders string
	}{
		{"the suite's", s, func(*config.Final) {}, own, "likelihood likelihood_per_char"},
		{"off", s, func(f *config.Final) { f.Likelihood, f.Shots = config.LikelihoodOff, &none },
			suite.Asking{Description: "D", Prompt: "Q {problem}"}, "exp gpqa"},
		{"the configuration's", s, func(f *config.Final) {
			f.Likelihood, f.Shots, f.ShotsSuite, f.Description, f.Prompt = eval.ByLetter, &two, "x", "E", "R {problem}"
		}, suite.Asking{Likelihood: eval.ByLetter, Shots: 2, ShotsSuite: "x", Description: "E", Prompt: "R {problem}"}, "likelihood"},
		{"none", s, func(f *config.Final) {
			f.Likelihood, f.Description, f.Prompt = config.LikelihoodOff, config.None, config.None
		},
			suite.Asking{Shots: 5, ShotsSuite: "dev", Prompt: "{problem}"}, "exp gpqa"},
		{"none of a suite without", bare, func(f *config.Final) { f.Description, f.Prompt = config.None, config.None },
			suite.Asking{Prompt: "{problem}"}, "exp gpqa"},
		{"nobody's", bare, func(*config.Final) {}, suite.Asking{Prompt: "{problem}"}, "exp gpqa"},
		{"chosen graders", s, func(f *config.Final) { f.Graders = []string{"likelihood_per_byte", "exp"} }, own, "likelihood_per_byte"},
		{"chosen graders of samples", bare, func(f *config.Final) { f.Graders = []string{"likelihood_per_byte", "exp"} },
			suite.Asking{Prompt: "{problem}"}, "exp"},
	} {
		c := &config.Run{}
		c.Eval.Final.Likelihood, c.Eval.Final.Prompt = config.Auto, config.ProblemMark
		tt.set(&c.Eval.Final)
		if got := tt.s.AskingOf(c); got != tt.want {
			t.Errorf("%s: %+v", tt.name, got)
		}
		if got := GradersOf(c, tt.s); !slices.Equal(got, strings.Fields(tt.graders)) {
			t.Errorf("%s: graders %v", tt.name, got)
		}
	}
}
