package stage

import (
	"encoding/json"
	"fmt"

	"exp/eval/task"
	"exp/experiments/ident"
	"exp/harness/config"
	"exp/train/checkpoint"
	"exp/train/tokenizer"
)

// External are the digests of what a configuration names but does not contain.
type External struct {
	Data      map[string]ident.Digest // records of each source that is a file, by split; of recorded rollouts by "rollouts"
	Weights   ident.Digest            // tensors of a pretrained model; zero for random weights
	Tokenizer ident.Digest
	Reward    map[string]ident.Digest // what scores in training: program, template or model, by use
}

// Externals reads and digests what the configuration names, and checks that a run can
// be made of it. The error is a config.Errors with all that is wrong, each at its key.
func Externals(r *config.Resolved) (External, error) {
	x := External{Data: map[string]ident.Digest{}}
	c := &r.Run
	var errs config.Errors
	bad := func(key, code, message, help string) { errs = append(errs, r.ErrorAt(key, code, message, help)) }
	tok, err := Tokenizer(c)
	if err != nil {
		bad("tokenizer.kind", config.CodeData, err.Error(), "")
		tok = nil
	}
	for _, s := range splits(c) {
		if s.conf.Source == config.Generated || s.conf.Source == config.None {
			continue
		}
		d, err := s.digest(c, tok)
		if err != nil {
			bad(s.key, config.CodeData, err.Error(), "")
		}
		x.Data[string(s.name)] = d
	}
	if c.Rollout.Source == recordedSource {
		d, err := recordedDigest(c, tok)
		if err != nil {
			bad("rollout.recorded", config.CodeData, err.Error(), "")
		}
		x.Data[RoleRollouts] = d
	}
	if c.Model.Init == "pretrained" {
		_, broken := checkpoint.ReadConfig(c.Model.Base)
		d, err := weightsDigest(c.Model.Base)
		switch want := c.Model.Digest; {
		case broken != nil:
			bad("model.base", config.CodeData, broken.Error(), "")
		case err != nil:
			bad("model.base", config.CodeData, err.Error(), "")
		case want != "" && want != d.String():
			bad("model.digest", config.CodeDigest, fmt.Sprintf("model.digest does not match %q", c.Model.Base), "found "+d.String())
		}
		x.Weights = d
	}
	x.Reward = rewardDigests(c, bad)
	if errs != nil {
		return x, errs
	}
	x.Tokenizer, err = ident.Hash("exp/tokenizer/1", tok.Description())
	return x, err
}

// digest is that of the canonical records of a split's file, whatever their layout in
// it. It checks the problems on the way: their prompts too, unless tok is nil.
func (s split) digest(c *config.Run, tok tokenizer.Tokenizer) (ident.Digest, error) {
	t, err := task.New(taskConfig(c))
	if err != nil {
		return ident.Digest{}, err
	}
	problems, err := s.read(t)
	if err != nil {
		return ident.Digest{}, err
	}
	for _, need := range s.needs(c) {
		if need.n > len(problems) {
			return ident.Digest{}, fmt.Errorf("%s has %d problems, %s asks for %d", s.conf.Source, len(problems), need.key, need.n)
		}
	}
	if tok != nil {
		if err := checkPrompts(c, tok, problems); err != nil {
			return ident.Digest{}, fmt.Errorf("%s: %w", s.conf.Source, err)
		}
	}
	records := ident.NewRecords()
	for i := range problems {
		b, err := json.Marshal(&problems[i])
		if err != nil {
			return ident.Digest{}, err
		}
		if err := records.Add(b); err != nil {
			return ident.Digest{}, err
		}
	}
	return records.Digest(), nil
}

// need is a number of different problems that a key asks of a split.
type need struct {
	key string
	n   int
}

func (s split) needs(c *config.Run) []need {
	switch {
	case s.name == task.Train && c.SFT.Steps > 0:
		return []need{{"train.prompts_per_step", c.Train.PromptsPerStep}, {"sft.problems_per_step", c.SFT.ProblemsPerStep}}
	case s.name == task.Train:
		return []need{{"train.prompts_per_step", c.Train.PromptsPerStep}}
	case s.name == task.Val && c.Eval.Online.EverySteps > 0:
		return []need{{"eval.online.problems", c.Eval.Online.Problems}}
	}
	return nil
}

func weightsDigest(dir string) (d ident.Digest, err error) {
	t, err := checkpoint.OpenFolder(dir)
	if err != nil {
		return d, err
	}
	defer t.Close()
	return digestTensors(t.Sources())
}

// Tokenizer returns the configured tokenizer: the characters of the task, or that
// of the pretrained folder.
func Tokenizer(c *config.Run) (tokenizer.Tokenizer, error) {
	if c.Tokenizer.Kind == "model" {
		return tokenizer.ReadFolder(c.Model.Base)
	}
	t, err := task.New(taskConfig(c))
	if err != nil {
		return nil, err
	}
	return tokenizer.NewChar(t.Alphabet())
}
