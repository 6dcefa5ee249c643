package stage

import (
	"fmt"

	"exp/eval/task"
	"exp/experiments/ident"
	"exp/harness/config"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// promptEncoder encodes prompts within a limit of tokens: truncate says what
// becomes of a longer one ("error", or the side that is cut off: "left", "right").
func promptEncoder(encode func(string) ([]int32, error), limit int, truncate string) func(string) ([]int32, error) {
	return func(text string) ([]int32, error) {
		ids, err := encode(text)
		if err != nil || len(ids) <= limit {
			return ids, err
		}
		switch truncate {
		case "left":
			return ids[len(ids)-limit:], nil
		case "right":
			return ids[:limit], nil
		}
		return nil, fmt.Errorf("the prompt has %d tokens, data.max_prompt_tokens is %d; raise it, or set data.truncate", len(ids), limit)
	}
}

// checkPrompts finds the first prompt that cannot be encoded or is too long.
func checkPrompts(c *config.Run, tok tokenizer.Tokenizer, problems []rollout.Problem) error {
	encode := promptEncoder(tokenizer.Text(tok), c.Data.MaxPromptTokens, c.Data.Truncate)
	for i := range problems {
		if _, err := encode(problems[i].Prompt); err != nil {
			return fmt.Errorf("problem %s: %w", problems[i].ID, err)
		}
	}
	return nil
}

// CheckProblems checks the prompts of all splits, and that the problems of the run's
// steps have their recorded rollouts, given what prepare made. It is for the moment
// before anything is trained on them: a test prompt that is too long would be found
// after the training otherwise. e is of the train stage. The error is a config.Errors.
func CheckProblems(e *Env, problems func(role string) (ident.Digest, bool)) error {
	tok, err := Tokenizer(e.run())
	if err != nil {
		return err
	}
	encode := promptEncoder(tokenizer.Text(tok), e.run().Data.MaxPromptTokens, e.run().Data.Truncate)
	for _, s := range e.Suites {
		if err := e.checkSuitePrompts(encode, s); err != nil {
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
		if err := checkPrompts(e.run(), tok, list); err != nil {
			return config.Errors{e.Config.ErrorAt("data.max_prompt_tokens", config.CodeConflict, fmt.Sprintf("data.%s: %v", s.name, err), "")}
		}
		if s.name == task.Train && e.run().Rollout.Source == recordedSource {
			if err := e.checkRecorded(problems, tok, list); err != nil {
				return err
			}
		}
	}
	return nil
}
