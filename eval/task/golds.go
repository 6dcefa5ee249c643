package task

import (
	"slices"

	"exp/eval/grade"
	"exp/eval/layout"
	"exp/train/rollout"
)

// UnreadGold is a gold answer that our grader does not understand.
type UnreadGold struct {
	ID   string // of the problem
	Gold string
	Err  error
}

// ReadsTurns reports whether a grader judges the answer of a completion's first turn, after its thinking, and so needs
// to know where special tokens stand; others read the whole text, as their sources do.
func ReadsTurns(name string) bool {
	return OwnGrader(name) || name == instructionsKind || slices.Contains(InstructionGraders(), name)
}

// OwnGrader reports whether a grader of mathematics reads gold answers as package grade does.
func OwnGrader(name string) bool { return slices.Contains([]string{"exp", strictGrader}, name) }

// Golds returns the gold answers of a problem of mathematics; any one is right.
func Golds(p *rollout.Problem) ([]string, error) {
	facts, err := layout.FactsOf(p)
	if err != nil {
		return nil, err
	}
	return append([]string{p.Answer}, facts.Answers...), nil
}

// UnreadGolds lists the gold answers that our grader does not understand, of problems that have no other: no answer
// in other words would be right.
func UnreadGolds(problems []rollout.Problem) ([]UnreadGold, error) {
	var list []UnreadGold
	for i := range problems {
		p := &problems[i]
		golds, err := Golds(p)
		if err != nil {
			return nil, err
		}
		var first error
		understood := false
		for _, gold := range golds {
			err := grade.CheckGold(gold)
			understood = understood || err == nil
			if first == nil {
				first = err
			}
		}
		if !understood {
			list = append(list, UnreadGold{p.ID, p.Answer, first})
		}
	}
	return list, nil
}
