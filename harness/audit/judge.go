package audit

import (
	"context"
	"strings"

	"exp/eval/grade"
	"exp/eval/task"
	"exp/experiments/store"
	"exp/train/rollout"
)

// ownGrader is the name of our grader.
const ownGrader = "exp"

// kept is the part of a recorded completion that is read (harness/run writes it).
type kept struct {
	Text string `json:"text"`
	// Graded is what the task's grader read of Text; nil: all of it.
	Graded *string `json:"graded"`
	Basis  string  `json:"basis"` // of the recorded verdict; "" if its grader does not say
}

// completion is a recorded completion.
type completion struct {
	sample  store.Sample
	problem *rollout.Problem
	kept    kept
	verdict *store.Verdict // nil if none is recorded
}

// grader names what gave the recorded verdict, or would have.
func (c completion) grader() string {
	if c.verdict == nil {
		return ownGrader
	}
	name, _, _ := strings.Cut(c.verdict.Scorer.Name, "/")
	return name
}

// finding is the audit's result for one completion.
type finding struct {
	step     int64
	cause    Cause // "" if there is nothing to say
	right    bool
	changed  bool // the same grader gives another verdict today
	form     string
	accepted []string
	refused  []string
	example  Example
}

// judge compares the recorded verdict on a completion with today's graders.
func (a *auditor) judge(ctx context.Context, c completion) (finding, error) {
	own, gold, err := ownVerdict(c.problem, c.kept.Text)
	if err != nil {
		return finding{}, err
	}
	f := finding{step: c.sample.Step, right: own.Correct, form: formOf(own.Extracted),
		example: Example{Item: c.sample.Item, Sample: c.sample.K, Step: c.sample.Step, Gold: gold,
			Answer: own.Extracted, Reason: own.Reason}}
	basis := own.Basis.String()
	if c.verdict != nil {
		f.right, f.example.Reason = c.verdict.Correct, c.verdict.Reason
		switch {
		case c.kept.Basis != "":
			basis = c.kept.Basis
		case !own.Correct:
			basis = "" // another grader's verdict, and ours disagrees: its basis is unknown
		}
	}
	if err := a.votes(ctx, c, &f, own.Correct); err != nil {
		return f, err
	}
	switch {
	case f.changed:
		f.cause = Changed
	case f.right && (basis == string(Guess) || basis == string(Unit) || basis == string(Convention)):
		f.cause = Cause(basis)
	case len(f.accepted) > 0 && len(f.refused) > 0:
		f.cause = Disagreement
	}
	return f, nil
}

// votes counts the recorded verdict, our grader's verdict today, and the verdicts of the requested graders. If the
// grader of the recorded verdict judges otherwise today, only its two verdicts count.
func (a *auditor) votes(ctx context.Context, c completion, f *finding, own bool) error {
	name := c.grader()
	f.vote(name, f.right)
	if g := a.graders[name]; g != nil && c.verdict != nil {
		today, err := g.Grade(ctx, c.problem, &rollout.Completion{Text: c.kept.Text})
		if err != nil {
			return err
		}
		if f.changed = today.Correct != f.right; f.changed {
			f.example.Reason = today.Reason
			f.vote(name+" today", today.Correct)
			return nil
		}
	}
	if name != ownGrader {
		f.vote(ownGrader, own)
	}
	for _, other := range a.o.Graders {
		if other == name || other == ownGrader {
			continue
		}
		w, err := a.graders[other].Grade(ctx, c.problem, &rollout.Completion{Text: c.kept.Text})
		if err != nil {
			return err
		}
		f.vote(other, w.Correct)
	}
	return nil
}

func (f *finding) vote(grader string, right bool) {
	if right {
		f.accepted = append(f.accepted, grader)
	} else {
		f.refused = append(f.refused, grader)
	}
}

// ownVerdict returns our verdict on a text, and the gold answer that it is compared with: the one that it is right
// by, else the first.
func ownVerdict(p *rollout.Problem, text string) (v grade.Verdict, gold string, err error) {
	golds, err := task.Golds(p)
	if err != nil {
		return v, "", err
	}
	v, gold = grade.Response(golds[0], text), golds[0]
	for _, g := range golds[1:] {
		if v.Correct {
			break
		}
		if w := grade.Response(g, text); w.Correct {
			v, gold = w, g
		}
	}
	return v, gold, nil
}
