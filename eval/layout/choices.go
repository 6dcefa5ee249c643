package layout

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"exp/eval/rows"
	"exp/train/rollout"
)

// Choices says where the options of a multiple-choice question are. The problem's text is the question, an empty line
// and the options, each on a line with its letter:
//
//	Which gas do plants take up?
//
//	A) oxygen
//	B) carbon dioxide
//
// The gold answers are the letter and the letter with its option: B and (B) carbon dioxide.
type Choices struct {
	// Options names one column, which optionsIn reads, or a column for each option; every row needs the first two.
	Options []string
	// Shuffled puts the options in an order that the texts of the question and the options give, because the files
	// have the right one first.
	Shuffled bool
	Gold     goldForm // how the answer names the right option
}

// goldForm is how a row's answer names the right option.
type goldForm int

const (
	anyGold     goldForm = iota // see Choices.right
	goldNumber                  // digits are its number from 0, also if another option's text is the same
	goldText                    // it is the option's text, also if that is another one's letter
	goldOrdinal                 // digits are its number from 1, also if another option's text is the same
)

// maxOptions is the letters of the alphabet.
const maxOptions = 26

// choiceLayouts lists the layouts of multiple-choice questions. Without its options, a row of some would be a problem
// with a number as its answer, so Detect tries these first.
func choiceLayouts() []Layout {
	one := func(name, id, problem, answer, options string) Layout {
		return Layout{Name: name, ID: id, Problem: []string{problem}, Answer: answer,
			Choices: &Choices{Options: []string{options}}}
	}
	about := func(subject string, l Layout) Layout {
		l.Source = subject
		return l
	}
	columns := func(name, id, problem, answer string, shuffled bool, options ...string) Layout {
		return Layout{Name: name, ID: id, Problem: []string{problem}, Answer: answer,
			Choices: &Choices{Options: options, Shuffled: shuffled}}
	}
	race := one("race", "example_id", "", "answer", "options")
	race.Problem = []string{"article", "question"}
	logic := one("logiqa", "id", "", "correct_option", "options")
	logic.Problem = []string{"context", "query"}
	truthful := one("truthfulqa", "id", "question", "mc1_targets.labels", "mc1_targets.choices")
	truthful.Choices.Shuffled = true
	swag := one("hellaswag", "ind", "ctx", "label", "endings")
	swag.Adapt = hellaSwag
	letters := strings.Split("ABCDEFGHIJ", "")
	return append(commonsenseLayouts(), []Layout{
		about("High-level domain", columns("gpqa", "Record ID", "Question", "Correct Answer", true,
			"Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")),
		columns("sciq", "id", "question", "correct_answer", true,
			"correct_answer", "distractor1", "distractor2", "distractor3"),
		one("arc", "id", "question", "answerKey", "choices"), // CommonsenseQA, too
		one("openbookqa", "id", "question_stem", "answerKey", "choices"),
		one("arc-lines", "id", "question.stem", "answerKey", "question.choices"),
		race, logic, truthful,
		columns("piqa", "id", "goal", "label", false, "sol1", "sol2"),
		swag,
		about("discipline", one("supergpqa", "uuid", "question", "answer_letter", "options")),
		one("medqa", "id", "question", "answer_idx", "options"),
		one("aqua", "id", "question", "correct", "options"),
		about("category", one("mmlu-pro", "question_id", "question", "answer", "options")),
		about("subject", one("mmlu", "id", "question", "answer", "choices")),
		about("subject_name", columns("medmcqa", "id", "question", "cop", false, "opa", "opb", "opc", "opd")),
		columns("ceval", "id", "question", "answer", false, letters...),
		columns("cmmlu", "id", "Question", "Answer", false, letters...),
	}...)
}

// choosing returns the layout with the options that the row's column options or choices may hold, in this row or a
// later one.
func (l Layout) choosing(r rows.Row) Layout {
	if l.Choices != nil || l.Within != Whole || len(l.Problem) > 1 {
		return l
	}
	for _, column := range []string{"options", "choices"} {
		if _, ok := r.Fields[column]; ok {
			l.Choices = &Choices{Options: []string{column}}
		}
	}
	return l
}

// options are the options of a row in the problem's order.
type options struct {
	texts  []string
	labels []string // what the row calls them; nil: nothing
}

// offers reports whether the row has options. A row without some may be a plain problem.
func (c *Choices) offers(r rows.Row) bool {
	if len(c.Options) > 1 {
		return r.Has(c.Options[:2]...) && !r.Empty(c.Options[0]) && !r.Empty(c.Options[1])
	}
	switch v, _ := r.Value(c.Options[0]); v := v.(type) {
	case []any:
		return len(v) > 1
	case map[string]any:
		return len(v) > 1
	}
	return false
}

// read returns the options of a row that offers some. Errors are *rows.Error.
func (c *Choices) read(r rows.Row, question string) (o options, err error) {
	if len(c.Options) > 1 {
		for i, column := range c.Options {
			if !r.Has(column) || r.Empty(column) {
				for _, later := range c.Options[i:] {
					if r.Has(later) && !r.Empty(later) {
						return o, r.Errorf(column, "no option, but %q has one", later)
					}
				}
				break
			}
			text, err := r.Text(column)
			if err != nil {
				return o, err
			}
			o.texts = append(o.texts, text)
		}
	} else if o, err = optionsIn(r, c.Options[0]); err != nil {
		return o, err
	}
	column := c.Options[0]
	if n := len(o.texts); n < 2 || n > maxOptions {
		return o, r.Errorf(column, "%d options; a question has 2 to %d", n, maxOptions)
	}
	if o.labels != nil && len(o.labels) != len(o.texts) {
		return o, r.Errorf(column, "%d options, but %d labels", len(o.texts), len(o.labels))
	}
	o.unmark()
	for i, text := range o.texts {
		if o.texts[i] = strings.TrimSpace(text); o.texts[i] == "" {
			return o, r.Errorf(column, "option %s is empty", rollout.Letter(i))
		}
	}
	if c.Shuffled {
		o.shuffle(question)
	}
	return o, nil
}

// optionsIn reads options from one field: a list of texts; a list of objects with text and label; an object with the
// lists text and label; or an object of texts by their labels, which it sorts.
func optionsIn(r rows.Row, field string) (o options, err error) {
	v, _ := r.Value(field)
	switch v := v.(type) {
	case []any:
		if _, ok := v[0].(map[string]any); !ok {
			o.texts, err = r.Texts(field)
			return o, err
		}
		list, err := r.Objects(field)
		for _, x := range list {
			text, bad := x.Text("text")
			if bad != nil {
				return o, bad
			}
			label, bad := x.Text("label")
			if bad != nil {
				return o, bad
			}
			o.texts, o.labels = append(o.texts, text), append(o.labels, label)
		}
		return o, err
	case map[string]any:
		if r.Has(field+".text", field+".label") {
			if o.texts, err = r.Texts(field + ".text"); err == nil {
				o.labels, err = r.Texts(field + ".label")
			}
			return o, err
		}
		for _, label := range slices.Sorted(maps.Keys(v)) {
			text, err := r.Text(field + "." + label)
			if err != nil {
				return o, err
			}
			o.texts, o.labels = append(o.texts, text), append(o.labels, label)
		}
	}
	return o, nil
}

// unmark takes the letters off texts that all begin with their own: A)21, (A) 21, A. 21. Of A) and (A) alone, as
// MATH-Vision has them, it leaves the letter.
func (o *options) unmark() {
	bare, blank := make([]string, len(o.texts)), 0
	for i, text := range o.texts {
		rest, open := strings.CutPrefix(strings.TrimSpace(text), "(")
		rest, ok := strings.CutPrefix(rest, rollout.Letter(i))
		marks := ").:"
		if open {
			marks = ")"
		}
		if !ok || rest == "" || !strings.Contains(marks, rest[:1]) {
			return
		}
		if bare[i] = rest[1:]; strings.TrimSpace(rest[1:]) == "" {
			blank++
		}
	}
	if o.texts = bare; blank < len(bare) {
		return
	}
	for i := range bare {
		bare[i] = rollout.Letter(i)
	}
}

// shuffle orders the options by the digests of the question with each of them.
func (o *options) shuffle(question string) {
	slices.SortStableFunc(o.texts, func(a, b string) int {
		x, y := sha256.Sum256([]byte(question+"\x00"+a)), sha256.Sum256([]byte(question+"\x00"+b))
		return slices.Compare(x[:], y[:])
	})
	o.labels = nil
}

// String returns the lines of the options.
func (o *options) String() string {
	return (&rollout.Choice{Options: o.texts}).Lines()
}

// bare reports whether the options are their letters alone, because a picture shows what they are.
func (o *options) bare() bool {
	for i, text := range o.texts {
		if text != rollout.Letter(i) {
			return false
		}
	}
	return true
}

// CountChoices returns how many options a row has; 0 if the layout has none, or the row's cannot be read.
func (l Layout) CountChoices(r rows.Row) int {
	r, l, err := l.adapted(r)
	if err != nil || !l.offers(r) {
		return 0
	}
	o, err := l.Choices.read(r, "")
	if err != nil {
		return 0
	}
	return len(o.texts)
}

// Shuffles reports whether problems have their options in another order than the file.
func (l Layout) Shuffles() bool { return l.Choices != nil && l.Choices.Shuffled }

// offers reports whether a row has options for the layout to read. A chat has them in its text.
func (l Layout) offers(r rows.Row) bool {
	if l.Choices == nil || !l.Choices.offers(r) {
		return false
	}
	v, _ := r.Value(l.Problem[0])
	_, chat := v.([]any)
	return !chat
}

// choose returns a question with the options of its row, and how to show it. Its Right is -1 if the row names no
// answer.
func (l Layout) choose(r rows.Row, question string) (text string, c *rollout.Choice, err error) {
	o, err := l.Choices.read(r, question)
	if err != nil {
		return "", nil, err
	}
	text, c = question+"\n\n"+o.String(), &rollout.Choice{Question: question, Options: o.texts, Right: -1}
	if l.Tell != nil && l.Pictures != nil && (o.bare() || question == "") {
		text = question // the picture shows them
	}
	if !r.Has(l.Answer) || r.Empty(l.Answer) {
		return text, c, nil
	}
	right, err := l.Choices.right(r, l.Answer, o, question)
	if err != nil {
		return "", nil, err
	}
	if c.Right = right[0]; len(right) > 1 {
		c.Also = right[1:]
	}
	return text, c, nil
}

// keptChoice reads the multiple-choice question of a problem written by package task, or returns nil.
func keptChoice(r rows.Row) (*rollout.Choice, error) {
	const field = "multiple_choice"
	if v, _ := r.Value(field); v == nil {
		return nil, nil
	} else if _, ok := v.(map[string]any); !ok {
		return nil, nil // a column of the same name
	}
	raw, err := r.Raw(field)
	if err != nil {
		return nil, err
	}
	var c rollout.Choice
	if err := json.Unmarshal(raw, &c); err != nil || len(c.Options) < 2 || c.Right < -1 || c.Right >= len(c.Options) ||
		slices.ContainsFunc(c.Also, func(i int) bool { return i <= c.Right || i >= len(c.Options) }) {
		return nil, r.Errorf(field, "not a question with its options, as this program writes it; rename the column")
	}
	return &c, nil
}
