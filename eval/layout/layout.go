// Package layout reads problems from published files, in any form that package rows reads; it detects the
// layout from the fields of a row.
//
// A layout of mathematics says which fields hold the problem, its gold answer and its id, and how to find
// the answer in a worked solution. The layouts of programs (programLayouts) cover HumanEval, MBPP and
// their EvalPlus versions, LiveCodeBench, CodeElo, TACO, APPS, CodeContests, and the rows that RL
// trainers keep (verl's layout and DeepCoder's).
package layout

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"exp/eval/grade/instruct"
	"exp/eval/grade/peer"
	"exp/eval/rows"
	"exp/train/rollout"
)

// Layout names the fields of a problem. Fields are paths as in rows.Row.
type Layout struct {
	Name       string
	ID         string   // if the row lacks it, "id" is tried, then the row's number from 0
	Problem    []string // texts, joined by a space, or an empty line before Choices; or one list of chat messages
	Answer     string   // a text, a number, or a list of equally right answers
	Within     Within   // where the answer stands in that field
	Cluster    string   // optional: problems of one cluster are not independent
	Difficulty string   // optional: a number, or a text with one ("Level 3")
	Source     string   // optional: the data set; verl picks its grader by it
	Target     string   // optional: a worked solution to learn from
	Keep       []string // further columns to keep in Facts.Columns
	Images     *Images  // nil: rows with images are refused
	Choices    *Choices // of a multiple-choice question; nil: it has none
	Open       bool     // a problem may lack an answer
	Verifiable bool     // a problem has Facts.Instructions

	Pictures *Pictures // columns with an image each; nil: images are in the column of Images alone
	// Query is the column with the text of question and options as the benchmark's authors ask it; empty, or absent in
	// a row: the question, then its options.
	Query    string
	Tell     []string // columns that tell a row of this layout from others; a row may have null in them
	Only     bool     // and has no other columns
	Graders  []string // the benchmark's; nil: as for any question with so many options, or mathematics
	Decimals string   // optional: how many decimals the answer is asked with
	// Adapt returns a row with the fields that the layout names; nil: rows have them.
	Adapt func(r rows.Row) (rows.Row, error)
}

// Within says where in a text the answer stands.
type Within string

const (
	Whole Within = ""     // the text is the answer
	Hash  Within = "####" // after the last ####, as in GSM8K
	Box   Within = "box"  // in the last \boxed{…}, as in MATH's solutions
)

// Facts is the content of Problem.Data: everything known but text and answer.
type Facts struct {
	Answers    []string `json:"answers,omitempty"` // further gold answers, as good as the first
	Source     string   `json:"source,omitempty"`
	Difficulty *float64 `json:"difficulty,omitempty"`
	// Decimals is how many decimals a problem asks its number with, 0 for an integer; nil: it does not say.
	Decimals *int `json:"decimals,omitempty"`
	// Instructions are what a program can check a response for.
	Instructions []instruct.Instruction `json:"instructions,omitempty"`
	// Columns are further columns of the row that somebody asked for, as JSON has them.
	Columns map[string]any `json:"columns,omitempty"`
}

// FactsOf decodes the facts of a problem; they are empty if the problem has none.
func FactsOf(p *rollout.Problem) (Facts, error) {
	var f Facts
	if len(p.Data) == 0 {
		return f, nil
	}
	if err := json.Unmarshal(p.Data, &f); err != nil {
		return f, fmt.Errorf("problem %s: data: %w", p.ID, err)
	}
	return f, nil
}

// idField returns the field that a row has its id in; the row may lack it.
func (l Layout) idField(r rows.Row) string {
	if r.Has(l.ID) {
		return l.ID
	}
	return "id"
}

// adapted returns a row with the fields that the layout names, and the layout for such rows.
func (l Layout) adapted(r rows.Row) (rows.Row, Layout, error) {
	if l.Adapt == nil {
		return r, l, nil
	}
	r, err := l.Adapt(r)
	l.Adapt = nil
	return r, l, err
}

// Parse reads a problem. Errors are *rows.Error.
func (l Layout) Parse(r rows.Row) (rollout.Problem, error) {
	var p rollout.Problem
	var facts Facts
	r, l, err := l.adapted(r)
	if err != nil {
		return p, err
	}
	if err := l.problem(r, &p); err != nil {
		return p, err
	}
	if p.Prompt == "" {
		return p, r.Errorf(l.Problem[0], "empty problem without its picture")
	}
	answers, err := l.answers(r)
	if err != nil {
		return p, err
	}
	if len(answers) > 0 {
		p.Answer, facts.Answers = answers[0], answers[1:]
	}
	p.Tools = Tools(r)
	p.ID = strconv.Itoa(r.Index)
	id := l.idField(r)
	for to, field := range map[*string]string{&p.ID: id, &p.Cluster: l.Cluster, &facts.Source: l.Source} {
		if r.Has(field) {
			if *to, err = r.Text(field); err != nil {
				return p, err
			}
		}
	}
	if p.ID == "" {
		return p, r.Errorf(id, "empty id")
	}
	if l.Difficulty != "" && r.Has(l.Difficulty) {
		if facts.Difficulty, err = difficulty(r, l.Difficulty); err != nil {
			return p, err
		}
	}
	facts.Decimals = l.decimals(r)
	if p.Target == "" {
		p.Target = l.target(r)
	}
	if l.Verifiable {
		if facts.Instructions, err = instructions(r); err != nil {
			return p, err
		}
	}
	for _, name := range l.Keep {
		if v, ok := r.Value(name); ok {
			if hasBytes(v) {
				return p, r.Errorf(name, "it holds bytes, not text, and data.keep keeps text and numbers")
			}
			if facts.Columns == nil {
				facts.Columns = map[string]any{}
			}
			facts.Columns[name] = v
		}
	}
	if len(facts.Answers) > 0 || facts.Source != "" || facts.Difficulty != nil || facts.Columns != nil ||
		facts.Decimals != nil || l.Verifiable {
		p.Data, err = json.Marshal(facts)
	}
	return p, err
}

// problem reads the text of the problem. For a chat that is the last user message, and the whole chat is
// kept too.
func (l Layout) problem(r rows.Row, p *rollout.Problem) (err error) {
	if l.Images == nil {
		if err := textOnly(r); err != nil {
			return err
		}
	}
	field := ""
	if v, _ := r.Value(l.Problem[0]); len(l.Problem) == 1 {
		if _, ok := v.([]any); ok {
			field = l.Problem[0]
		}
	}
	if field != "" {
		err = l.chat(r, field, p)
	} else {
		field, err = l.text(r, p)
	}
	if err != nil || l.Images == nil {
		return err
	}
	if l.shows(r, field) {
		return l.showPictures(r, p)
	}
	if field == "" {
		if err := l.unshown(r); err != nil {
			return err
		}
	}
	return l.Images.illustrate(r, field, p)
}

// text reads a problem that is a text, and the messages of one that package task wrote, whose field it returns.
func (l Layout) text(r rows.Row, p *rollout.Problem) (field string, err error) {
	if p.Prompt, err = l.question(r); err != nil {
		return "", err
	}
	if l.offers(r) {
		if p.Prompt, p.Choice, err = l.choose(r, p.Prompt); err != nil {
			return "", err
		}
	}
	if l.Query != "" && r.Has(l.Query) {
		if p.Prompt, err = r.Text(l.Query); err != nil {
			return "", err
		}
	}
	if l.Name == "prompt" && p.Choice == nil {
		if p.Choice, err = keptChoice(r); err != nil {
			return "", err
		}
	}
	if v, _ := r.Value("messages"); l.Name == "prompt" { // a problem as package task writes it
		if _, ok := v.([]any); ok {
			field = "messages"
			p.Messages, err = l.messages(r, field)
		}
	}
	return field, err
}

// question reads the fields of a problem that is a text.
func (l Layout) question(r rows.Row) (string, error) {
	var parts []string
	for _, field := range l.Problem {
		s, err := r.Text(field)
		if err != nil {
			return "", err
		}
		parts = append(parts, strings.TrimSpace(s))
	}
	between := " "
	if l.Choices != nil {
		between = "\n\n"
	}
	text := strings.Join(parts, between)
	if strings.TrimSpace(text) == "" && l.Pictures == nil { // a picture may hold the whole problem
		return "", r.Errorf(l.Problem[0], "empty problem")
	}
	return text, nil
}

// messages reads a field with a list of chat messages, of texts only if problems have no images.
func (l Layout) messages(r rows.Row, field string) ([]rollout.Message, error) {
	if l.Images == nil {
		return Messages(r, field)
	}
	return readMessages(r, field)
}

// chat reads a list of messages. If the last one is the assistant's, it becomes the target.
func (l Layout) chat(r rows.Row, field string, p *rollout.Problem) error {
	list, err := l.messages(r, field)
	if err != nil {
		return err
	}
	if n := len(list) - 1; n > 0 && list[n].Role == "assistant" {
		p.Target = list[n].Content
		list = list[:n]
	}
	for _, m := range list {
		if m.Role == "user" {
			p.Prompt = m.Text()
		}
	}
	if p.Prompt == "" {
		return r.Errorf(field, "no user message")
	}
	if !rollout.Plain(list) {
		p.Messages = list
	}
	return nil
}

// Messages reads a field with a list of chat messages of texts. Errors are *rows.Error.
func Messages(r rows.Row, field string) ([]rollout.Message, error) {
	list, err := readMessages(r, field)
	for i := range list {
		if err := onlyTexts(list[i]); err != nil {
			return nil, r.Errorf(field, "message %d has %w", i+1, err)
		}
	}
	return list, err
}

// readMessages is Messages for any content.
func readMessages(r rows.Row, field string) ([]rollout.Message, error) {
	raw, err := r.Raw(field)
	if err != nil {
		return nil, err
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, r.Errorf(field, "not a list of messages with role and content")
	}
	list := make([]rollout.Message, len(items))
	for i, item := range items {
		if err := json.Unmarshal(item, &list[i]); err != nil {
			return nil, r.Errorf(field, "message %d: %w", i+1, err)
		}
	}
	return list, nil
}

// target returns a correct completion if the row has one, under our field name or the layout's.
func (l Layout) target(r rows.Row) string {
	for _, field := range []string{"target", l.Target} {
		if field == "" || !r.Has(field) {
			continue
		}
		if s, err := r.Text(field); err == nil {
			return s
		}
	}
	return ""
}

// keepsAnswer reports whether the column of the answer is kept for a reward of the user's, who then knows what to make
// of an object.
func (l Layout) keepsAnswer() bool {
	column, _, _ := strings.Cut(l.Answer, ".")
	return slices.Contains(l.Keep, column)
}

func (l Layout) answers(r rows.Row) ([]string, error) {
	if l.Open {
		return l.anyAnswer(r)
	}
	if l.offers(r) {
		question, err := l.question(r)
		if err != nil {
			return nil, err
		}
		_, c, err := l.choose(r, question)
		if err == nil && c.Right < 0 {
			err = r.Errorf(l.Answer, "%w", rows.ErrMissing)
		}
		if err != nil {
			return nil, err
		}
		return golds(c), nil
	}
	texts, err := r.Texts(l.Answer)
	if err != nil && l.keepsAnswer() {
		raw, err := r.Raw(l.Answer)
		return []string{string(raw)}, err
	}
	if v, ok := r.Value(l.Answer); err != nil && ok && v != nil {
		return nil, fmt.Errorf("%w; for a reward of your own, name its column in data.keep", err)
	}
	if err != nil {
		return nil, err
	}
	for i, s := range texts {
		switch l.Within {
		case Hash:
			k := strings.LastIndex(s, string(Hash))
			if k < 0 {
				return nil, r.Errorf(l.Answer, "no #### (the answer follows it)")
			}
			s = s[k+len(Hash):]
		case Box:
			box, ok := peer.LastBoxedOnly(s)
			if !ok {
				return nil, r.Errorf(l.Answer, "no \\boxed{…} (it holds the answer)")
			}
			s = unbox(box)
		}
		if texts[i] = strings.TrimSpace(s); texts[i] == "" {
			return nil, r.Errorf(l.Answer, "empty answer")
		}
	}
	if len(texts) == 0 {
		return nil, r.Errorf(l.Answer, "the list has no answer")
	}
	return texts, nil
}

// anyAnswer returns the answer of an open problem for the run's reward: what the layout finds, else the field itself,
// as JSON unless it is a text. It returns nothing if the row has no answer.
func (l Layout) anyAnswer(r rows.Row) ([]string, error) {
	if l.Answer == "" || r.Empty(l.Answer) || !r.Has(l.Answer) {
		return nil, nil
	}
	l.Open = false
	if texts, err := l.answers(r); err == nil {
		return texts, nil
	}
	if text, err := r.Text(l.Answer); err == nil {
		return []string{text}, nil
	}
	raw, err := r.Raw(l.Answer)
	return []string{string(raw)}, err
}

// unbox returns the content of \boxed{…}, \fbox{…} or "\boxed …".
func unbox(s string) string {
	if _, inner, ok := strings.Cut(s, "{"); ok && strings.HasSuffix(s, "}") {
		return inner[:len(inner)-1]
	}
	return strings.TrimPrefix(s, "\\boxed ")
}

// difficulty reads 3, "3" or "Level 3". "Level ?", which some MATH rows have, gives nil.
func difficulty(r rows.Row, field string) (*float64, error) {
	s, err := r.Text(field)
	if err != nil {
		return nil, err
	}
	digits := strings.TrimLeft(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz ")
	x, err := strconv.ParseFloat(digits, 64)
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		return nil, nil
	case err != nil:
		return nil, r.Errorf(field, "%w", err)
	}
	return &x, nil
}

// WithoutGold returns a copy of a problem that has no gold answers. Everything else is as it was.
func WithoutGold(p *rollout.Problem) (q rollout.Problem, err error) {
	f, err := FactsOf(p)
	if err != nil {
		return q, err
	}
	q = *p
	q.Answer = ""
	if p.Choice != nil {
		c := *p.Choice
		c.Right, c.Also, q.Choice = -1, nil, &c
	}
	if len(f.Answers) > 0 {
		f.Answers = nil
		q.Data, err = json.Marshal(f)
	}
	return q, err
}

// SetFacts stores gold answers and source in a problem. golds must not be empty.
func SetFacts(p *rollout.Problem, golds []string, source string) (err error) {
	p.Answer = golds[0]
	if len(golds) > 1 || source != "" {
		p.Data, err = json.Marshal(Facts{Answers: golds[1:], Source: source})
	}
	return err
}
