package stage

import (
	"bytes"
	"fmt"
	"strings"

	"exp/eval/task"
	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/train/rollout"
)

// rateBins is the number of parts of a histogram of pass rates: 0, ten equal ones between, each with its lower end
// but for the first, and 1.
const rateBins = 12

// Selection counts training problems by their pass rates.
type Selection struct {
	Problems  int                `json:"problems"`
	Kept      int                `json:"kept"`
	Min       float64            `json:"min"` // data.pass_rate.min
	Max       float64            `json:"max"`
	Below     int                `json:"below"`
	Above     int                `json:"above"`
	Unrated   int                `json:"unrated"` // without a pass rate
	Never     int                `json:"never"`   // solved
	Always    int                `json:"always"`
	Mean      float64            `json:"mean"` // pass rate of those with one
	Histogram [rateBins]ratePart `json:"histogram"`
}

// ratePart is a part of the histogram.
type ratePart struct {
	Rates    string `json:"rates"` // "0", "0 to 0.1", …, "1"
	Problems int    `json:"problems"`
	Kept     int    `json:"kept"`
}

// newSelection has counted no problem yet.
func newSelection(in config.PassRates) Selection {
	s := Selection{Min: in.Min, Max: in.Max}
	for bin := range s.Histogram {
		s.Histogram[bin].Rates = binName(bin)
	}
	return s
}

// binOf returns the part of the histogram with a rate.
func binOf(rate float64) int {
	switch {
	case rate <= 0:
		return 0
	case rate >= 1:
		return rateBins - 1
	}
	tenth := 0
	for float64(tenth+1)/10 <= rate {
		tenth++
	}
	return 1 + tenth
}

// binName returns the rates of a part, "0.1 to 0.2".
func binName(bin int) string {
	switch bin {
	case 0:
		return "0"
	case rateBins - 1:
		return "1"
	}
	return fmt.Sprintf("%s to %s", tenths(bin-1), tenths(bin))
}

func tenths(n int) string {
	if n%10 == 0 {
		return fmt.Sprint(n / 10)
	}
	return fmt.Sprintf("0.%d", n)
}

// add counts a problem's rate, and reports whether the problem is kept.
func (s *Selection) add(rate *float64) (kept bool) {
	s.Problems++
	if rate == nil {
		s.Unrated++
		return false
	}
	part := &s.Histogram[binOf(*rate)]
	part.Problems++
	switch {
	case *rate < s.Min:
		s.Below++
	case *rate > s.Max:
		s.Above++
	default:
		s.Kept++
		part.Kept++
		kept = true
	}
	s.Never, s.Always = s.Histogram[0].Problems, s.Histogram[rateBins-1].Problems
	s.Mean += *rate // a sum so far
	return kept
}

// selectProblems keeps the training problems whose pass rates lie in the configured range, in their order.
func selectProblems(e *Env, in Inputs) (*Outcome, error) {
	problems, err := e.problemsOf(in, RoleTrain)
	if err != nil {
		return nil, err
	}
	rates, err := linesOf[passRate](e, in, RolePassRates)
	if err != nil {
		return nil, err
	}
	if len(rates) != len(problems) {
		return nil, fmt.Errorf("there are %d pass rates of %d problems", len(rates), len(problems))
	}
	s := newSelection(e.run().Data.PassRate)
	var kept []rollout.Problem
	for i := range problems {
		if rates[i].Problem != problems[i].ID {
			return nil, fmt.Errorf("pass rate %d is of problem %s, not of %s", i+1, rates[i].Problem, problems[i].ID)
		}
		if s.add(rates[i].Rate) {
			kept = append(kept, problems[i])
		}
	}
	if rated := s.Problems - s.Unrated; rated > 0 {
		s.Mean /= float64(rated)
	}
	c := e.run()
	if need := c.Train.PromptsPerStep; s.Kept < need {
		return nil, &FewProblemsError{Counts: s, Need: need, Recorded: c.Data.PassRate.Recorded()}
	}
	if s.Unrated > 0 {
		why := "no completion of theirs has a verdict"
		if c.Data.PassRate.Recorded() {
			why = "their rows have none in the column " + c.Data.PassRate.Column
		}
		e.event("no-pass-rate", "data.pass_rate: %s of %d left out without a pass rate: %s",
			quantity.Plural(s.Unrated, "problem"), s.Problems, why)
	}
	var b bytes.Buffer
	if err := task.Write(&b, kept); err != nil {
		return nil, err
	}
	o, err := e.put(RoleTrain, "problems", b.Bytes())
	if err != nil {
		return nil, err
	}
	return &Outcome{Outputs: []Output{o}, Summary: s, Facts: metrics(fact("kept", float64(s.Kept)),
		fact("never solved", float64(s.Never)), fact("always solved", float64(s.Always)))}, nil
}

// FewProblemsError says that the range of pass rates leaves fewer training problems than a step has.
type FewProblemsError struct {
	Counts   Selection
	Need     int  // train.prompts_per_step
	Recorded bool // the rates come from data.pass_rate.column
}

func (e *FewProblemsError) Error() string {
	s := &e.Counts
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %s have a pass rate from data.pass_rate.min (%v) to max (%v); train.prompts_per_step asks "+
		"for %d\n  pass rate    problems", s.Kept, quantity.Plural(s.Problems, "training problem"), s.Min, s.Max,
		e.Need)
	line := func(name string, n int, what string) {
		if n > 0 {
			b.WriteString(strings.TrimRight(fmt.Sprintf("\n  %-10s %10d  %s", name, n, what), " "))
		}
	}
	for _, part := range s.Histogram {
		what := ""
		switch {
		case part.Kept == part.Problems:
			what = "in the range"
		case part.Kept > 0:
			what = fmt.Sprintf("%d in the range", part.Kept)
		}
		line(part.Rates, part.Problems, what)
	}
	line("unknown", s.Unrated, "")
	return b.String()
}

// ExitCode is the code of a configuration that asks the impossible.
func (e *FewProblemsError) ExitCode() int { return 2 }

// Hint says what to change.
func (e *FewProblemsError) Hint() string {
	do := "widen data.pass_rate.min and data.pass_rate.max, lower train.prompts_per_step, or give more problems"
	switch s := &e.Counts; {
	case s.Kept+s.Never+s.Always+s.Unrated < s.Problems: // others lie just outside the range
	case 2*s.Never >= s.Problems && !e.Recorded:
		do = "most problems are never solved: sample more (data.pass_rate.samples), begin with sft or a better " +
			"model, take easier problems, or lower train.prompts_per_step"
	case 2*s.Always >= s.Problems && !e.Recorded:
		do = "most problems are always solved: take harder ones, sample more (data.pass_rate.samples), or lower " +
			"train.prompts_per_step"
	}
	return do + "; measured pass rates are kept"
}
