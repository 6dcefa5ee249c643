package layout

import (
	"encoding/json"
	"iter"

	"exp/eval/rows"
)

// TRL's columns for labelled steps, besides the prompt.
const (
	completionsField = "completions"
	labelsField      = "labels"
)

// Stepwise is an answer in steps, with a label for each.
type Stepwise struct {
	Asked  Conversation `json:"asked"` // the prompt, as messages or as the text Prompt
	Steps  []string     `json:"steps"`
	Labels []*bool      `json:"labels"` // whether the step is right; nil: nobody says
}

// LabelledSteps reads an answer from each row in TRL's columns prompt, a text or a list of messages, completions, a
// list of texts, and labels, a list as long of true and false, 1 and 0, PRM800K's ratings (1 is right, 0 and -1
// are not), or null for a step that nobody labelled. Further columns are as for Conversations. Errors are
// *rows.Error.
func LabelledSteps(all iter.Seq2[rows.Row, error]) (list []Stepwise, err error) {
	owner := map[string]string{}
	for r, err := range all {
		if err != nil {
			return nil, err
		}
		x, err := stepwise(r)
		if err != nil {
			return nil, err
		}
		x.Asked.ID = numbered(x.Asked.ID, owner)
		owner[x.Asked.ID] = r.Where
		list = append(list, x)
	}
	return list, nil
}

func stepwise(r rows.Row) (x Stepwise, err error) {
	for _, field := range []string{promptField, completionsField, labelsField} {
		if !r.Has(field) {
			return x, r.Errorf("", "no labelled steps: looked for the columns %s, %s and %s; %s is missing",
				promptField, completionsField, labelsField, field)
		}
	}
	if x.Asked, err = begun(r, nil); err == nil {
		err = x.Asked.readPrompt(r)
	}
	if err != nil {
		return x, err
	}
	if x.Steps, err = r.Texts(completionsField); err != nil {
		return x, r.Errorf(completionsField, "not a list of texts, one for each step")
	}
	if x.Labels, err = labelsOf(r); err != nil {
		return x, err
	}
	if len(x.Labels) != len(x.Steps) || len(x.Steps) == 0 {
		return x, r.Errorf(labelsField, "%d labels for %d steps in %s; each step needs one", len(x.Labels),
			len(x.Steps), completionsField)
	}
	for i, s := range x.Steps {
		if s == "" {
			return x, r.Errorf(completionsField, "step %d is empty", i+1)
		}
	}
	return x, nil
}

// readPrompt reads the column prompt, a list of messages or a text.
func (c *Conversation) readPrompt(r rows.Row) (err error) {
	if isList(r, promptField) {
		err = c.readMessages(r, promptField)
		n := len(c.Messages)
		switch {
		case err != nil:
			return err
		case n == 0:
			return r.Errorf(promptField, "no messages")
		case c.Messages[n-1].Role == "assistant":
			return r.Errorf(promptField, "its last message is the assistant's; put the whole answer into %s",
				completionsField)
		}
		c.Asked = n
		c.lead(r)
		return nil
	}
	if c.Prompt, err = r.Text(promptField); err == nil && c.Prompt == "" {
		err = r.Errorf(promptField, "it is empty")
	}
	return err
}

// labelsOf reads the labels of steps.
func labelsOf(r rows.Row) (list []*bool, err error) {
	raw, err := r.Raw(labelsField)
	if err != nil {
		return nil, err
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return nil, r.Errorf(labelsField, "not a list of labels, true or false")
	}
	for i, item := range items {
		var right *bool
		if json.Unmarshal(item, &right) != nil {
			var rating float64
			if json.Unmarshal(item, &rating) != nil || rating != 1 && rating != 0 && rating != -1 {
				return nil, r.Errorf(labelsField, "label %d is %s, not true, false, 1, 0, -1 or null", i+1, item)
			}
			right = new(bool)
			*right = rating == 1
		}
		list = append(list, right)
	}
	return list, nil
}
