package stage

import (
	"fmt"

	"exp/eval/task"
	"exp/experiments/ident"
	"exp/harness/config"
	"exp/train/rollout"
)

// CheckProblems checks the prompts of all splits, and that the problems of the run's
// steps have recorded rollouts, given the outputs of prepare. Calling it before
// training finds, for instance, a test prompt that is too long. e belongs to the train
// stage. The error is a config.Errors.
func CheckProblems(e *Env, problems func(role string) (ident.Digest, bool)) error {
	p, err := e.prompter()
	if err != nil {
		return err
	}
	for _, s := range e.Suites {
		if err := e.checkSuitePrompts(p, s); err != nil {
			return err
		}
	}
	for _, s := range splits(e.run()) {
		d, ok := problems(s.role)
		if !ok {
			continue
		}
		list, err := e.problemsOf(Inputs{s.role: d}, s.role)
		if err != nil {
			return err
		}
		if err := p.check(list); err != nil {
			return config.Errors{e.Config.ErrorAt("data.max_prompt_tokens", config.CodeConflict,
				fmt.Sprintf("data.%s: %v", s.name, err), "")}
		}
		if s.name == task.Train && e.run().Rollout.Source == recordedSource {
			if err := e.checkRecorded(problems, p.Vocabulary(), list); err != nil {
				return err
			}
		}
	}
	return nil
}

// prompter returns the run's prompter, which the caller may have set.
func (e *Env) prompter() (*Prompter, error) {
	var err error
	if e.Prompter == nil {
		e.Prompter, err = NewPrompter(e.run())
	}
	return e.Prompter, err
}

// warnTruncated reports how many prompts are cut and what a cut may remove, and tools that no
// prompt shows. The record keeps the counts.
func (e *Env) warnTruncated(p *Prompter, name string, problems []rollout.Problem) int {
	e.warnTools(p, name, problems)
	n := p.Truncated(problems)
	if n == 0 {
		return 0
	}
	loses := ""
	if p.template != nil {
		loses = map[string]string{"left": "; the beginning of a chat, its system message, is cut off first",
			"right": "; what asks the model to answer is cut off first"}[e.run().Data.Truncate]
	}
	e.event("truncated-prompts", "%d of %d prompts of %s are longer than data.max_prompt_tokens (%d) and were cut "+
		"(data.truncate: %s)%s",
		n, len(problems), name, e.run().Data.MaxPromptTokens, e.run().Data.Truncate, loses)
	return n
}
