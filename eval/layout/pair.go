package layout

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"exp/eval/rows"
	"exp/train/rollout"
)

// TRL's columns for preferences.
const (
	chosenField   = "chosen"
	rejectedField = "rejected"
	marginField   = "margin"
)

// Pair is a preferred answer to a prompt, and another one. Both conversations begin with the prompt, as Asked messages
// or as the text Prompt.
type Pair struct {
	Chosen   Conversation `json:"chosen"`
	Rejected Conversation `json:"rejected"`
	// Same says that the answers do not differ.
	Same bool `json:"same,omitempty"`
	// Margin says how much better chosen is; nil if nobody does. Only RatedPairs reads it.
	Margin *float64 `json:"margin,omitempty"`
}

// Pairs reads a pair from each row, in TRL's columns chosen and rejected: lists of messages, as for Conversations, or
// texts. With the column prompt in the same form, they are what follows it. Without, or with a prompt that is a text
// before lists, they hold the prompt too: the messages that both begin with, or of two texts what commonPrompt says.
// Further columns are tools, system and id, as for Conversations. Errors are *rows.Error.
//
// Both sides may show the images of the row, each all of them; images is as for Conversations.
func Pairs(all iter.Seq2[rows.Row, error], images *Images) ([]Pair, error) {
	return pairs(all, images, false)
}

// RatedPairs is Pairs of texts alone with the column margin, a number, where rows have it.
func RatedPairs(all iter.Seq2[rows.Row, error]) ([]Pair, error) { return pairs(all, nil, true) }

func pairs(all iter.Seq2[rows.Row, error], images *Images, margins bool) (list []Pair, err error) {
	owner := map[string]string{}
	for r, err := range all {
		if err != nil {
			return nil, err
		}
		p, err := pair(r, images)
		if err == nil && margins && r.Has(marginField) {
			p.Margin = new(float64)
			*p.Margin, err = r.Number(marginField)
		}
		if err != nil {
			return nil, err
		}
		p.Chosen.ID = numbered(p.Chosen.ID, owner)
		p.Rejected.ID = p.Chosen.ID
		owner[p.Chosen.ID] = r.Where
		list = append(list, p)
	}
	return list, nil
}

func pair(r rows.Row, x *Images) (p Pair, err error) {
	for _, field := range []string{chosenField, rejectedField} {
		if !r.Has(field) {
			single := ""
			if r.Has(labelField) {
				single = ". Its " + labelField + " makes it a single answer, which prefer.loss: kto learns from"
			}
			return p, r.Errorf("", "no pair: looked for the columns %s and %s; %s is missing%s", chosenField,
				rejectedField, field, single)
		}
	}
	if p.Chosen, err = begun(r, x); err == nil {
		p.Rejected, err = begun(r, x)
	}
	if err != nil {
		return p, err
	}
	chosen, listed := isList(r, chosenField), isList(r, rejectedField)
	if chosen != listed {
		return p, r.Errorf("", "one of %s and %s is a list of messages, the other a text; make both lists, or both "+
			"texts", chosenField, rejectedField)
	}
	switch {
	case r.Has(promptField) && (isList(r, promptField) || !listed):
		if err = p.Chosen.readAnswer(r, chosenField); err == nil {
			err = p.Rejected.readAnswer(r, rejectedField)
		}
	case listed:
		err = p.readLists(r)
	default:
		err = p.readTexts(r)
	}
	if err == nil {
		err = p.Chosen.finish("chosen side")
	}
	if err == nil {
		err = p.Rejected.finish("rejected side")
	}
	if err == nil && digestsOf(p.Chosen.asks()) != digestsOf(p.Rejected.asks()) {
		err = r.Errorf("", "the prompts of %s and %s show different images", chosenField, rejectedField)
	}
	if err != nil {
		return p, err
	}
	p.Same, err = p.alike()
	return p, err
}

// isList reports whether a column holds a list.
func isList(r rows.Row, field string) bool {
	v, _ := r.Value(field)
	_, ok := v.([]any)
	return ok
}

// alike reports whether both answers are the same.
func (p *Pair) alike() (bool, error) {
	if p.Chosen.Target != p.Rejected.Target || len(p.Chosen.Messages) != len(p.Rejected.Messages) {
		return false, nil
	}
	n, err := p.common()
	return n == len(p.Chosen.Messages) && digestsOf(p.Chosen.Images) == digestsOf(p.Rejected.Images), err
}

// Pictures returns the images of the prompt, then those that each side shows after it.
func (p *Pair) Pictures() []rollout.Picture {
	return slices.Concat(p.Chosen.Images, p.Rejected.Images[len(p.Rejected.asks()):])
}

// asks returns the images that the messages which ask show.
func (c *Conversation) asks() []rollout.Picture {
	n := 0
	for _, m := range c.Messages[:c.Asked] {
		n += m.Images()
	}
	return c.Images[:n]
}

// common returns how many messages both conversations begin with.
func (p *Pair) common() (n int, err error) {
	a, b := p.Chosen.Messages, p.Rejected.Messages
	for n < min(len(a), len(b)) {
		x, err := json.Marshal(a[n])
		if err != nil {
			return n, err
		}
		y, err := json.Marshal(b[n])
		if err != nil || string(x) != string(y) {
			return n, err
		}
		n++
	}
	return n, nil
}

// readLists reads two lists of messages that begin with the prompt.
func (p *Pair) readLists(r rows.Row) error {
	sides := [2]*Conversation{&p.Chosen, &p.Rejected}
	fields := [2]string{chosenField, rejectedField}
	for i, c := range sides {
		if err := c.readMessages(r, fields[i]); err != nil {
			return err
		}
		if len(c.Messages) == 0 {
			return r.Errorf(fields[i], "no messages")
		}
	}
	n, err := p.common()
	if err != nil {
		return err
	}
	if n == len(p.Chosen.Messages) && n == len(p.Rejected.Messages) {
		n-- // they are the same, and left out
	}
	for i, c := range sides {
		switch {
		case n == 0:
			return r.Errorf(fields[i], "its first message differs from the other list's: without the column %s both "+
				"must begin with the same messages", promptField)
		case n == len(c.Messages):
			return r.Errorf(fields[i], "it ends where the other list goes on: no answer is left after the prompt, "+
				"their first %d messages", n)
		case c.Messages[n].Role != "assistant":
			return r.Errorf(fields[i], "message %d is the first that differs from the other list's, and is of role "+
				"%s: both must answer the same prompt", n+1, c.Messages[n].Role)
		}
		if err := checkTurns(c.Messages[n:], true); err != nil {
			return r.Errorf(fields[i], "after the prompt: %w", err)
		}
		c.Asked = n
		c.lead(r)
	}
	return nil
}

// readTexts reads two texts that begin with the prompt.
func (p *Pair) readTexts(r rows.Row) error {
	chosen, err := r.Text(chosenField)
	if err != nil {
		return r.Errorf(chosenField, "neither a list of messages nor a text")
	}
	rejected, err := r.Text(rejectedField)
	if err != nil {
		return r.Errorf(rejectedField, "neither a list of messages nor a text")
	}
	if x := p.Chosen.shown; x != nil && len(x.column) > 0 {
		return r.Errorf(x.Column, "texts show no images; make %s and %s lists of messages", chosenField, rejectedField)
	}
	if r.Has("system") {
		return r.Errorf("system", "it has no place before texts; make %s and %s lists of messages", chosenField,
			rejectedField)
	}
	n := commonPrompt(chosen, rejected)
	if chosen == rejected {
		p.Chosen.Prompt, p.Chosen.Target = chosen, chosen
		p.Rejected.Prompt, p.Rejected.Target = rejected, rejected
		return nil // left out
	}
	for i, rest := range []string{chosen[n:], rejected[n:]} {
		if n == 0 || rest == "" {
			return r.Errorf([]string{chosenField, rejectedField}[i], "no prompt and answer in it: without the "+
				"column %s both texts must begin with the same words and go on after them", promptField)
		}
	}
	p.Chosen.Prompt, p.Chosen.Target = chosen[:n], chosen[n:]
	p.Rejected.Prompt, p.Rejected.Target = rejected[:n], rejected[n:]
	return nil
}

// assistantTurn begins an answer in texts of Anthropic's HH data.
const assistantTurn = "\n\nAssistant:"

// commonPrompt returns the length of the prompt of two texts: of what both begin with, up to the end of the last
// assistantTurn in it; without one, up to the beginning of the word in which they part, without the white space before
// it. TRL cuts where the first character differs, or at a space before it.
func commonPrompt(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	if at := strings.LastIndex(a[:n], assistantTurn); at >= 0 {
		return at + len(assistantTurn)
	}
	space := func(s string) bool {
		c, _ := utf8.DecodeRuneInString(s[n:])
		return unicode.IsSpace(c)
	}
	if !space(a) || !space(b) {
		n = max(0, strings.LastIndexFunc(a[:n], unicode.IsSpace))
	}
	return len(strings.TrimRightFunc(a[:n], unicode.IsSpace))
}
