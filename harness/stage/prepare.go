package stage

import (
	"bytes"
	"fmt"

	"exp/eval/task"
	"exp/experiments/ident"
	"exp/harness/config"
	"exp/train/rollout"
)

// split is one part of the data with the role of its problems.
type split struct {
	role string
	name task.Split
	conf config.Split
	key  string // of the source, for errors
}

// digestKey is the key that pins the split's problems.
func (s split) digestKey() string { return "data." + string(s.name) + ".digest" }

func splits(c *config.Run) []split {
	return []split{
		{RoleTrain, task.Train, c.Data.Train, "data.train.source"},
		{RoleVal, task.Val, c.Data.Val, "data.val.source"},
		{RoleTest, task.Test, c.Data.Test, "data.test.source"},
	}
}

// prepare makes the problems of all splits, and reads the recorded rollouts. Each
// becomes a blob of one JSON object a line.
func prepare(e *Env) (*Outcome, error) {
	t, err := task.New(taskConfig(e.run()))
	if err != nil {
		return nil, err
	}
	out := &Outcome{}
	summary := map[string]int{}
	for _, s := range splits(e.run()) {
		if s.conf.Source == config.None {
			continue
		}
		problems, err := s.problems(t, e.run().Data.Seed)
		if err != nil {
			return nil, err
		}
		all := len(problems)
		if problems, err = e.fitting(problems); err != nil {
			return nil, fmt.Errorf("data.%s: %w", s.name, err)
		}
		if n := all - len(problems); n > 0 {
			e.event("overlong-prompts", "data.%s: %d of %d problems have prompts longer than data.max_prompt_tokens "+
				"(%d) and are left out",
				s.name, n, all, e.run().Data.MaxPromptTokens)
			summary[string(s.name)+"_overlong"] = n
		}
		if len(problems) == 0 {
			return nil, fmt.Errorf("data.%s: all %d prompts are longer than data.max_prompt_tokens (%d)", s.name, all,
				e.run().Data.MaxPromptTokens)
		}
		var b bytes.Buffer
		if err := task.Write(&b, problems); err != nil {
			return nil, err
		}
		o, err := e.put(s.role, "problems", b.Bytes())
		if err != nil {
			return nil, err
		}
		out.Outputs = append(out.Outputs, o)
		summary[string(s.name)] = len(problems)
		out.Facts = append(out.Facts, fact(string(s.name), float64(len(problems))))
	}
	if e.run().Rollout.Source == recordedSource {
		o, n, err := e.putRecorded()
		if err != nil {
			return nil, err
		}
		out.Outputs = append(out.Outputs, o)
		summary["rollouts"] = n
		out.Facts = append(out.Facts, fact("rollouts", float64(n)))
	}
	out.Summary = summary
	return out, nil
}

// fitting leaves out the problems that are too long, where data.filter_overlong says so.
func (e *Env) fitting(problems []rollout.Problem) ([]rollout.Problem, error) {
	if !e.run().Data.FilterOverlong {
		return problems, nil
	}
	p, err := e.prompter()
	if err != nil {
		return nil, err
	}
	return p.fitting(problems)
}

// problems generates or reads the split.
func (s split) problems(t task.Task, seed int64) ([]rollout.Problem, error) {
	if s.conf.Source == config.Generated {
		return t.Generate(s.name, s.conf.Size, ident.Seed(seed, "data/"+string(s.name)))
	}
	return s.read(t)
}

// read reads the problems of a file: the first Size, or all where Size is 0.
func (s split) read(t task.Task) ([]rollout.Problem, error) {
	all, err := task.ReadFile(t, s.conf.Source)
	switch {
	case err != nil:
		return nil, err
	case len(all) == 0:
		return nil, fmt.Errorf("%s holds no problems", s.conf.Source)
	case s.conf.Size > len(all):
		return nil, fmt.Errorf("%s has %d problems, data.%s.size asks for %d", s.conf.Source, len(all), s.name,
			s.conf.Size)
	case s.conf.Size > 0:
		all = all[:s.conf.Size]
	}
	return all, nil
}

// problemsOf reads a stage's problems back.
func (e *Env) problemsOf(in Inputs, role string) ([]rollout.Problem, error) {
	b, err := e.input(in, role)
	if err != nil {
		return nil, err
	}
	t, err := task.New(taskConfig(e.run()))
	if err != nil {
		return nil, err
	}
	return task.Read(t, bytes.NewReader(b), role)
}
