package layout

import (
	"iter"
	"strings"

	"exp/eval/rows"
)

// labelField is TRL's column that says whether an answer is good.
const labelField = "label"

// Labelled is an answer to a prompt, and whether it is good. The conversation begins with the prompt, as Asked
// messages or as the text Prompt.
type Labelled struct {
	Answer Conversation `json:"answer"`
	Good   bool         `json:"good"`
	// Same says that it is from a pair whose answers do not differ.
	Same bool `json:"same,omitempty"`
}

// LabelledAnswers reads answers from each row: one in TRL's columns prompt, completion and label, the first two as
// lists of messages or texts, the last true or false, 1 or 0. Or two from a row as for Pairs, the chosen one good and
// the rejected one bad; they are called ID/chosen and ID/rejected. images is as for Conversations. Errors are
// *rows.Error.
func LabelledAnswers(all iter.Seq2[rows.Row, error], images *Images) (list []Labelled, err error) {
	owner := map[string]string{}
	for r, err := range all {
		if err != nil {
			return nil, err
		}
		found, err := labelled(r, images)
		if err != nil {
			return nil, err
		}
		for _, x := range found {
			x.Answer.ID = numbered(x.Answer.ID, owner)
			owner[x.Answer.ID] = r.Where
			list = append(list, x)
		}
	}
	return list, nil
}

func labelled(r rows.Row, x *Images) ([]Labelled, error) {
	if r.Has(chosenField) || r.Has(rejectedField) {
		p, err := pair(r, x)
		if err != nil {
			return nil, err
		}
		p.Chosen.ID, p.Rejected.ID = p.Chosen.ID+"/"+chosenField, p.Rejected.ID+"/"+rejectedField
		return []Labelled{{Answer: p.Chosen, Good: true, Same: p.Same}, {Answer: p.Rejected, Same: p.Same}}, nil
	}
	for _, field := range []string{promptField, completionField, labelField} {
		if !r.Has(field) {
			return nil, r.Errorf("", "no labelled answer: looked for the columns %s, %s and %s, or %s and %s; %s is "+
				"missing", promptField, completionField, labelField, chosenField, rejectedField, field)
		}
	}
	c, err := begun(r, x)
	if err == nil {
		err = c.readAnswer(r, completionField)
	}
	if err == nil {
		err = c.finish("conversation")
	}
	if err != nil {
		return nil, err
	}
	good, err := label(r)
	return []Labelled{{Answer: c, Good: good}}, err
}

// label reads whether a row's answer is good.
func label(r rows.Row) (bool, error) {
	v, _ := r.Value(labelField)
	if good, ok := v.(bool); ok {
		return good, nil
	}
	if text, err := r.Text(labelField); err == nil {
		switch strings.ToLower(text) {
		case "true", "1":
			return true, nil
		case "false", "0":
			return false, nil
		}
	}
	raw, err := r.Raw(labelField)
	if err != nil {
		return false, err
	}
	return false, r.Errorf(labelField, "%s is neither true nor false", raw)
}
