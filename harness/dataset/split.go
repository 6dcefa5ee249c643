// Package dataset reads or makes the data that a configuration names: the problems of its splits, and
// conversations to fine-tune on.
package dataset

import (
	"fmt"

	"exp/eval/layout"
	"exp/eval/rows"
	"exp/eval/task"
	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/train/rollout"
)

// Split is one part of the data with the role of its problems.
type Split struct {
	Role   string
	Name   task.Split
	Config config.Split
	Key    string // of the source, for errors
	Source task.Source
	Mixed  bool // the task is one of several kinds, and says itself how many problems it makes
}

// DigestKey is the key that pins the split's problems.
func (s Split) DigestKey() string { return "data." + string(s.Name) + ".digest" }

// Splits lists the parts of the data: for training, validation and tests, in this order.
func Splits(c *config.Run) []Split {
	list := []Split{
		{Role: config.RoleTrain, Name: task.Train, Config: c.Data.Train, Key: "data.train.source"},
		{Role: config.RoleVal, Name: task.Val, Config: c.Data.Val, Key: "data.val.source"},
		{Role: config.RoleTest, Name: task.Test, Config: c.Data.Test, Key: "data.test.source"},
	}
	for i := range list {
		s := &list[i]
		s.Source = task.Source{Path: s.Config.Source, More: s.Config.More, MaxRows: s.Config.MaxSamples,
			Drawn: c.Data.Select == "random", Seed: uint64(c.Data.Seed), Images: images(c)}
		s.Mixed = c.Task.Kind == config.MixedTask
		if s.Role == config.RoleTrain || c.JudgesAlone() { // otherwise only training asks reward.command
			s.Source.Keep = c.Data.Keep
		}
		if p := c.Data.PassRate; s.Role == config.RoleTrain && p.Recorded() {
			s.Source.Rate = p.Column
		}
		if s.Role != config.RoleTrain && s.Mixed {
			s.Source.KeepOf = config.PromptsTask
		}
		if c.Data.PromptKey != config.Auto {
			s.Source.PromptKey = c.Data.PromptKey
		}
	}
	return list
}

// Problems generates or reads the split, or both for a mixed task. rates has the pass rates of problems read by id, as
// ReadRated has them; nil without any. left is empty if nothing is read.
func (s Split) Problems(t task.Task, seed int64) (list []rollout.Problem, rates map[string]float64, left LeftOut,
	err error) {
	stream := ident.Seed(seed, "data/"+string(s.Name))
	switch {
	case s.Config.Source != config.Generated:
		list, rates, left, err = s.readByID(t)
	case !s.Mixed:
		list, err = t.Generate(s.Name, s.Config.Size, stream)
	}
	if err != nil {
		return nil, nil, left, err
	}
	list, err = task.WithGenerated(t, s.Name, list, stream)
	return list, rates, left, err
}

// readByID is ReadRated with the rates by problem.
func (s Split) readByID(t task.Task) ([]rollout.Problem, map[string]float64, LeftOut, error) {
	list, rates, left, err := s.ReadRated(t)
	if err != nil || rates == nil {
		return list, nil, left, err
	}
	byID := make(map[string]float64, len(rates))
	for i, x := range rates {
		byID[list[i].ID] = x
	}
	return list, byID, left, nil
}

// LeftOut counts the rows of a split's file that are not used, by reason.
type LeftOut struct {
	task.Counts
	Further int // different problems after the first data.*.size
}

// Read reads the problems of a file: the first Size, or all if Size is 0.
func (s Split) Read(t task.Task) ([]rollout.Problem, LeftOut, error) {
	all, _, left, err := s.ReadRated(t)
	return all, left, err
}

// ReadRated is Read with the problems' pass rates (data.pass_rate.column): NaN where a row has none, nil for a split
// without them.
func (s Split) ReadRated(t task.Task) ([]rollout.Problem, []float64, LeftOut, error) {
	all, rates, counts, err := s.Source.ReadRated(t)
	left := LeftOut{Counts: counts}
	switch {
	case err != nil:
		return nil, nil, left, err
	case len(all) == 0:
		return nil, nil, left, fmt.Errorf("%s holds no problems", s.Config.Files())
	case s.Config.Size > len(all):
		return nil, nil, left, fmt.Errorf("%s has %s%s, data.%s.size asks for %d", s.Config.Files(),
			quantity.Plural(len(all), "problem"), left.selection(), s.Name, s.Config.Size)
	case s.Config.Size > 0:
		left.Further = len(all) - s.Config.Size
		all = all[:s.Config.Size]
		if rates != nil {
			rates = rates[:s.Config.Size]
		}
	}
	return all, rates, left, nil
}

// selection says how many rows were taken; empty for all.
func (l LeftOut) selection() string {
	if l.Unselected == 0 {
		return ""
	}
	return fmt.Sprintf(" in the %d of %d rows that it takes", l.Rows-l.Unselected, l.Rows)
}

// Pairs reads the file of prefer.source.
func Pairs(c *config.Run, x *layout.Images) ([]layout.Pair, error) {
	list, err := layout.Pairs(rows.Read(c.Prefer.Source), x)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s holds no pairs", c.Prefer.Source)
	}
	return list, err
}

// LabelledAnswers reads the file of prefer.source for a loss of single answers.
func LabelledAnswers(c *config.Run, x *layout.Images) ([]layout.Labelled, error) {
	list, err := layout.LabelledAnswers(rows.Read(c.Prefer.Source), x)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s holds no answers", c.Prefer.Source)
	}
	return list, err
}

// RatedPairs reads a file of pairs that a reward model learns from, or is validated on.
func RatedPairs(path string) ([]layout.Pair, error) {
	list, err := layout.RatedPairs(rows.Read(path))
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s holds no pairs", path)
	}
	return list, err
}

// LabelledSteps reads a file of answers in steps that a reward model learns from, or is validated on.
func LabelledSteps(path string) ([]layout.Stepwise, error) {
	list, err := layout.LabelledSteps(rows.Read(path))
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s holds no answers", path)
	}
	return list, err
}

// Conversations reads the file of sft.source.
func Conversations(c *config.Run, x *layout.Images) ([]layout.Conversation, error) {
	list, err := layout.Conversations(rows.Read(c.SFT.Source), x)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s holds no conversations", c.SFT.Source)
	}
	return list, err
}
