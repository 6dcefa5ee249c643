package stage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"exp/eval/layout"
	"exp/eval/rows"
	"exp/eval/task"
	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/train/rollout"
)

// split is one part of the data with the role of its problems.
type split struct {
	role   string
	name   task.Split
	conf   config.Split
	key    string // of the source, for errors
	source task.Source
}

// digestKey is the key that pins the split's problems.
func (s split) digestKey() string { return "data." + string(s.name) + ".digest" }

func splits(c *config.Run) []split {
	list := []split{
		{role: RoleTrain, name: task.Train, conf: c.Data.Train, key: "data.train.source"},
		{role: RoleVal, name: task.Val, conf: c.Data.Val, key: "data.val.source"},
		{role: RoleTest, name: task.Test, conf: c.Data.Test, key: "data.test.source"},
	}
	for i := range list {
		s := &list[i]
		s.source = task.Source{Path: s.conf.Source, More: s.conf.More, MaxRows: s.conf.MaxSamples,
			Drawn: c.Data.Select == "random", Seed: uint64(c.Data.Seed)}
		if s.role == RoleTrain || c.JudgesAlone() { // otherwise only training asks reward.command
			s.source.Keep = c.Data.Keep
		}
		if c.Data.PromptKey != config.Auto {
			s.source.PromptKey = c.Data.PromptKey
		}
	}
	return list
}

// prepare makes the problems of all splits and reads the recorded rollouts. Each becomes a blob
// with one JSON object per line.
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
		problems, left, err := s.problems(t, e.run().Data.Seed)
		if err != nil {
			return nil, err
		}
		e.countRows(s, left, len(problems), summary)
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
		if n, err := e.checkGolds(s, problems); err != nil {
			return nil, err
		} else if n > 0 {
			summary[string(s.name)+"_unread_golds"] = n
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
	if e.run().SFT.OnConversations() {
		o, n, err := e.putConversations()
		if err != nil {
			return nil, err
		}
		out.Outputs = append(out.Outputs, o)
		summary[RoleConversations] = n
		out.Facts = append(out.Facts, fact(RoleConversations, float64(n)))
	}
	out.Summary = summary
	return out, nil
}

// shownGolds bounds the list of gold answers in an event.
const shownGolds = 5

// checkGolds counts and lists the gold answers that our grader does not understand, if it grades
// the run: the same answers in other words would count as wrong.
func (e *Env) checkGolds(s split, problems []rollout.Problem) (int, error) {
	if c := e.run().Task; c.Kind != "math" || !task.OwnGrader(c.Math.Grader) {
		return 0, nil
	}
	list, err := task.UnreadGolds(problems)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	var which strings.Builder
	for _, g := range list[:min(len(list), shownGolds)] {
		fmt.Fprintf(&which, "; %s: %q: %v", g.ID, g.Gold, g.Err)
	}
	e.event("unread-golds", "data.%s: the grader does not understand %d of %d gold answers%s", s.name, len(list),
		len(problems), which.String())
	return len(list), nil
}

// fitting leaves out problems that are too long, if data.filter_overlong says so.
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

// problems generates or reads the split. left is empty if it is generated.
func (s split) problems(t task.Task, seed int64) (list []rollout.Problem, left leftOut, err error) {
	if s.conf.Source == config.Generated {
		list, err = t.Generate(s.name, s.conf.Size, ident.Seed(seed, "data/"+string(s.name)))
		return list, left, err
	}
	return s.read(t)
}

// leftOut counts the rows of a split's file that are not used, by reason.
type leftOut struct {
	task.Counts
	Further int // different problems after the first data.*.size
}

// read reads the problems of a file: the first Size, or all if Size is 0.
func (s split) read(t task.Task) ([]rollout.Problem, leftOut, error) {
	all, counts, err := s.source.Read(t)
	left := leftOut{Counts: counts}
	switch {
	case err != nil:
		return nil, left, err
	case len(all) == 0:
		return nil, left, fmt.Errorf("%s holds no problems", s.conf.Files())
	case s.conf.Size > len(all):
		return nil, left, fmt.Errorf("%s has %s%s, data.%s.size asks for %d", s.conf.Files(),
			quantity.Plural(len(all), "problem"), left.selection(), s.name, s.conf.Size)
	case s.conf.Size > 0:
		left.Further = len(all) - s.conf.Size
		all = all[:s.conf.Size]
	}
	return all, left, nil
}

// selection says how many rows were taken; empty for all.
func (l leftOut) selection() string {
	if l.Unselected == 0 {
		return ""
	}
	return fmt.Sprintf(" in the %d of %d rows that it takes", l.Rows-l.Unselected, l.Rows)
}

// countRows adds the counts of a file's rows to a summary, by split, and reports those left out.
func (e *Env) countRows(s split, left leftOut, problems int, summary map[string]int) {
	if left.Rows == 0 {
		return
	}
	summary[string(s.name)+"_rows"] = left.Rows
	withoutAnswer := "without an answer"
	if task.RunsPrograms(e.run().Task.Kind) {
		withoutAnswer = "without tests"
	}
	var parts []string
	for _, part := range []struct {
		name, text string
		n          int
	}{
		{"unselected", "not selected (data." + string(s.name) + ".max_samples)", left.Unselected},
		{"unanswered", withoutAnswer, left.Unanswered},
		{"repeated", "copies of another", left.Repeated},
		{"further", "after the first data." + string(s.name) + ".size", left.Further},
	} {
		if part.n > 0 {
			summary[string(s.name)+"_"+part.name] = part.n
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.text))
		}
	}
	if len(parts) > 0 {
		e.event("rows-left-out", "data.%s: %d rows give %d problems; left out: %s", s.name, left.Rows, problems,
			strings.Join(parts, ", "))
	}
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

// readConversations reads the file of sft.source.
func readConversations(c *config.Run) ([]layout.Conversation, error) {
	list, err := layout.Conversations(rows.Read(c.SFT.Source))
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s holds no conversations", c.SFT.Source)
	}
	return list, err
}

// putConversations stores the conversations as JSON lines.
func (e *Env) putConversations() (Output, int, error) {
	list, err := readConversations(e.run())
	if err != nil {
		return Output{}, 0, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for i := range list {
		if err := enc.Encode(&list[i]); err != nil {
			return Output{}, 0, err
		}
	}
	o, err := e.put(RoleConversations, "problems", b.Bytes())
	return o, len(list), err
}

// conversationsOf reads them back.
func (e *Env) conversationsOf(in Inputs) (list []layout.Conversation, err error) {
	b, err := e.input(in, RoleConversations)
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(b)); d.More(); {
		var c layout.Conversation
		if err := d.Decode(&c); err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}
