package layout

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"exp/eval/rows"
	"exp/train/rollout"
)

// right returns the numbers of the options that a field calls right, in order; at least one without an error. It is
// the option in that column, if the column is one of theirs. Else a text is one of the row's labels, a letter, or an
// option's text; a number that is not a label counts options from 0, and so do digits that match nothing else. A list
// has a 1 for each right option and 0 for others, or holds one of the above.
func (c *Choices) right(r rows.Row, field string, o options, question string) ([]int, error) {
	if slices.Contains(c.Options, field) {
		text, err := r.Text(field)
		return []int{slices.Index(o.texts, strings.TrimSpace(text))}, err
	}
	v, _ := r.Value(field)
	if list, ok := v.([]any); ok {
		if len(list) == len(o.texts) {
			return c.marked(r, field, o, question)
		}
		if len(list) != 1 {
			return nil, r.Errorf(field, "%d right options, but not a 0 or 1 for each option", len(list))
		}
		v = list[0]
	}
	i, err := c.named(r, field, v, o)
	return []int{i}, err
}

// named returns the number of the option that a value of a field names.
func (c *Choices) named(r rows.Row, field string, v any, o options) (int, error) {
	if c.Gold == goldOrdinal {
		texts, err := r.Texts(field)
		if err != nil {
			return 0, err
		}
		i, err := strconv.Atoi(rows.Decimal(strings.TrimSpace(texts[0])))
		if err != nil || i < 1 || i > len(o.texts) {
			return 0, r.Errorf(field, "%q is not the number of an option, 1 to %d", texts[0], len(o.texts))
		}
		return i - 1, nil
	}
	if number, ok := v.(json.Number); ok {
		if i := slices.Index(o.labels, rows.Decimal(number.String())); i >= 0 {
			return i, nil
		}
		if i, err := strconv.Atoi(rows.Decimal(number.String())); err == nil && i >= 0 && i < len(o.texts) {
			return i, nil
		}
	}
	texts, err := r.Texts(field)
	if err != nil {
		return 0, err
	}
	name := strings.TrimSpace(texts[0])
	if i := slices.Index(o.labels, name); i >= 0 {
		return i, nil
	}
	if i := slices.Index(o.texts, name); i >= 0 && c.Gold == goldText {
		return i, nil
	}
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(o.texts) && c.Gold == goldNumber {
		return i, nil
	}
	if bare := strings.ToUpper(strings.Trim(name, "(). ")); len(bare) == 1 && len(o.labels) == 0 {
		if i := int(bare[0]) - 'A'; i >= 0 && i < len(o.texts) {
			return i, nil
		}
	}
	if i := slices.Index(o.texts, name); i >= 0 {
		return i, nil
	}
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(o.texts) {
		return i, nil
	}
	return 0, r.Errorf(field, "%q is none of the %d options in %q: not a letter, an option's text, or its number "+
		"from 0; rename that column if it does not hold options", name, len(o.texts), c.Options[0])
}

// marked is right for a list with a number for each option of the row, in the file's order.
func (c *Choices) marked(r rows.Row, field string, o options, question string) ([]int, error) {
	texts, err := r.Texts(field)
	if err != nil {
		return nil, err
	}
	as := Choices{Options: c.Options}
	file, err := as.read(r, question)
	if err != nil {
		return nil, err
	}
	var found []int
	for i, mark := range texts {
		if mark == "1" {
			found = append(found, slices.Index(o.texts, file.texts[i]))
		}
	}
	if len(found) == 0 {
		return nil, r.Errorf(field, "no option is right")
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// golds returns the gold answers of a question; none if its answer is not known.
func golds(c *rollout.Choice) []string {
	if c.Right < 0 {
		return nil
	}
	var list []string
	for i, option := range c.Options {
		if c.IsRight(i) {
			list = append(list, rollout.Letter(i), fmt.Sprintf("(%s) %s", rollout.Letter(i), option))
		}
	}
	return list
}
