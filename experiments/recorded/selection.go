package recorded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// Kinds of the stages that choose training problems by their pass rates, and roles of what these read and write.
const (
	stagePassRate = "pass_rate"
	stageSelect   = "select"
	roleTrain     = "problems/train"
	rolePassRates = "pass rates"
)

// Selection says which training problems pass rates chose, as stage select recorded it.
type Selection struct {
	Problems int     `json:"problems"`
	Kept     int     `json:"kept"`
	Min      float64 `json:"min"` // least pass rate of those kept
	Max      float64 `json:"max"`
	Below    int     `json:"below"`
	Above    int     `json:"above"`
	Unrated  int     `json:"unrated"` // without a pass rate
	Never    int     `json:"never"`   // solved
	Always   int     `json:"always"`
	Mean     float64 `json:"mean"` // pass rate

	Histogram []RatePart `json:"histogram"` // from 0 to 1
}

// RatePart is a part of a histogram of pass rates.
type RatePart struct {
	Rates    string `json:"rates"` // "0", "0.1 to 0.2": the upper end belongs to the next part
	Problems int    `json:"problems"`
	Kept     int    `json:"kept"`
}

// SelectionOf returns the newest selection of a run with these stages, and the digest of the problems kept; ok is
// false without one.
func SelectionOf(stages []store.Stage) (s Selection, kept ident.Digest, ok bool) {
	for _, st := range slices.Backward(stages) {
		if st.Kind != stageSelect || len(st.Outputs) == 0 || json.Unmarshal(st.Result, &s) != nil {
			continue
		}
		return s, store.DigestOf(st.Outputs, roleTrain), true
	}
	return Selection{}, ident.Digest{}, false
}

// RatedProblem is a training problem with the pass rate that chose it.
type RatedProblem struct {
	ID     string   `json:"problem"`
	Rate   *float64 `json:"rate"` // nil: unknown
	Kept   *bool    `json:"kept"` // nil: nothing was chosen yet
	Kind   string   `json:"kind"` // of task, in a run of several; else empty
	Prompt string   `json:"prompt"`
	Answer string   `json:"answer"`
	// Of the completions sampled for it; 0 where the data brought the rates along.
	Samples   int      `json:"samples"`
	Graded    int      `json:"graded"`
	Correct   int      `json:"correct"`
	Truncated int      `json:"truncated"`
	Tokens    int      `json:"tokens"`
	Score     *float64 `json:"score"` // mean reward, where the reward judges alone
}

// ErrNotRated is returned for a run that has measured no pass rates, and read none.
var ErrNotRated = errors.New("the run has no pass rates of its training problems")

// RatedProblems returns a run's training problems with their pass rates, in the order of the data.
func RatedProblems(db *store.DB, stages []store.Stage) ([]RatedProblem, error) {
	problems, rates, kept := ratedBlobs(stages)
	if problems.IsZero() || rates.IsZero() {
		return nil, ErrNotRated
	}
	var list []RatedProblem
	err := eachLine(db, rates, func(line []byte) error {
		var x RatedProblem
		err := json.Unmarshal(line, &x)
		list = append(list, x)
		return err
	})
	if err != nil {
		return nil, err
	}
	at := 0
	err = eachLine(db, problems, func(line []byte) error {
		var p problemText
		if err := json.Unmarshal(line, &p); err != nil {
			return err
		}
		if at >= len(list) || p.ID != list[at].ID {
			return fmt.Errorf("problem %s has no pass rate", p.ID)
		}
		list[at].Prompt, list[at].Answer, list[at].Kind = p.text(), p.Answer, p.Kind
		at++
		return nil
	})
	if err != nil || kept.IsZero() {
		return list, err
	}
	chosen := map[string]bool{}
	err = eachLine(db, kept, func(line []byte) error {
		var p problemText
		err := json.Unmarshal(line, &p)
		chosen[p.ID] = true
		return err
	})
	for i := range list {
		yes := chosen[list[i].ID]
		list[i].Kept = &yes
	}
	return list, err
}

// ratedBlobs returns the digests of a run's training problems, of their pass rates and of the problems kept: what
// stage select read and wrote, or else what stage pass_rate did.
func ratedBlobs(stages []store.Stage) (problems, rates, kept ident.Digest) {
	for _, s := range slices.Backward(stages) {
		switch s.Kind {
		case stageSelect:
			return store.DigestOf(s.Inputs, roleTrain), store.DigestOf(s.Inputs, rolePassRates),
				store.DigestOf(s.Outputs, roleTrain)
		case stagePassRate:
			if d := store.DigestOf(s.Outputs, rolePassRates); !d.IsZero() {
				return store.DigestOf(s.Inputs, roleTrain), d, kept
			}
		}
	}
	return problems, rates, kept
}

// problemText is what people see of a stored problem.
type problemText struct {
	ID       string `json:"id"`
	Prompt   string `json:"prompt"`
	Answer   string `json:"answer"`
	Kind     string `json:"task_kind"`
	Messages []struct {
		Role    string `json:"role"`
		Content any    `json:"content"` // a text, or parts
	} `json:"messages"`
}

// text is the problem's text: of a chat, the last message that is one.
func (p *problemText) text() string {
	for _, m := range slices.Backward(p.Messages) {
		if text, ok := m.Content.(string); ok && m.Role == "user" {
			return text
		}
	}
	return p.Prompt
}

// eachLine calls f for the lines of a blob.
func eachLine(db *store.DB, d ident.Digest, f func(line []byte) error) error {
	b, err := db.Blobs.Bytes(d)
	if err != nil {
		return err
	}
	n := 0
	for line := range bytes.Lines(b) {
		n++
		if err := f(line); err != nil {
			return fmt.Errorf("blob %s, line %d: %w", d.Short(), n, err)
		}
	}
	return nil
}
