package suite

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"exp/eval"
)

// Asking says how the problems of a suite are asked. The zero value asks them as they are and samples answers.
type Asking struct {
	Likelihood  string `json:"likelihood,omitempty" yaml:"likelihood"`   // one of eval.Ways; empty: sample
	Shots       int    `json:"shots,omitempty" yaml:"shots"`             // solved problems before each
	ShotsSuite  string `json:"shots_suite,omitempty" yaml:"shots_suite"` // with these
	Description string `json:"description,omitempty" yaml:"description"` // before them; {source}: the problem's
	Prompt      string `json:"prompt,omitempty" yaml:"prompt"`           // with {problem}; empty: the problem alone
}

// String returns the asking as JSON; empty for the zero value.
func (a Asking) String() string {
	if a == (Asking{}) {
		return ""
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(a); err != nil {
		panic("suite: " + err.Error()) // texts and a number
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// ParseAsking reads what String writes.
func ParseAsking(text string) (a Asking, err error) {
	if text == "" {
		return a, nil
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return a, fmt.Errorf("how the suite is asked: %w", err)
	}
	return a, a.check()
}

// check returns an error for settings that nothing can be asked with.
func (a Asking) check() error {
	switch {
	case a.Likelihood != "" && !slices.Contains(eval.Ways(), a.Likelihood):
		return fmt.Errorf("likelihood: %q is none of %s", a.Likelihood, strings.Join(eval.Ways(), ", "))
	case a.Likelihood == eval.ByBlank && a.Prompt != "" && !strings.HasSuffix(a.Prompt, eval.ProblemMark):
		return fmt.Errorf("prompt: it needs %s at its end, where the text behind the blank goes on", eval.ProblemMark)
	case a.Shots < 0:
		return fmt.Errorf("shots: %d examples", a.Shots)
	case a.Shots > 0 && a.ShotsSuite == "":
		return fmt.Errorf("shots: name the suite that the %d examples come from: shots_suite", a.Shots)
	case a.Shots == 0 && a.ShotsSuite != "":
		return fmt.Errorf("shots_suite: how many examples? Say it: shots")
	case a.Prompt != "" && strings.Count(a.Prompt, eval.ProblemMark) != 1:
		return fmt.Errorf("prompt: it needs %s once, where the problem goes", eval.ProblemMark)
	}
	return nil
}
