// Package layout knows how published files write a mathematics problem down: under
// which names the problem, its gold answer and its id stand, and how the answer hides
// in a worked solution. Which layout a file has shows in its fields.
package layout

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"exp/eval/grade/peer"
	"exp/eval/rows"
	"exp/train/rollout"
)

// Layout names the fields of a problem; fields are paths as in rows.Row.
type Layout struct {
	Name       string
	ID         string   // where it is not in the row, "id" is tried, then the row has its number from 0
	Problem    []string // texts, joined by a blank; or one list of chat messages
	Answer     string   // a text, a number, or a list of answers of which any is right
	Within     Within   // where in the answer field the answer is
	Cluster    string   // optional: what problems are not counted independently of
	Difficulty string   // optional: a number, or a text with one ("Level 3")
	Source     string   // optional: the data set, by which verl chooses its grader
	Target     string   // optional: a worked solution, which a model can learn from
}

// Within says where an answer stands in the text that holds it.
type Within string

const (
	Whole Within = ""     // the text is the answer
	Hash  Within = "####" // behind the last ####, as in GSM8K
	Box   Within = "box"  // in the last \boxed{…}, as in MATH's solutions
)

// Facts are what is known of a problem beyond its text and answer: Problem.Data.
type Facts struct {
	Answers    []string `json:"answers,omitempty"` // further gold answers, as right as the first
	Source     string   `json:"source,omitempty"`
	Difficulty *float64 `json:"difficulty,omitempty"`
}

// FactsOf reads those of a problem; a problem without any has none.
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

// Known are the layouts of published files, in the order in which Detect tries them.
func Known() []Layout {
	return []Layout{
		{Name: "verl", ID: "extra_info.index", Problem: []string{"prompt"}, Answer: "reward_model.ground_truth",
			Source: "data_source"},
		{Name: "verl-messages", ID: "extra_info.index", Problem: []string{"messages"},
			Answer: "reward_model.ground_truth", Source: "data_source"},
		{Name: "svamp", ID: "ID", Problem: []string{"Body", "Question"}, Answer: "Answer"},
		{Name: "olympiadbench", ID: "id", Problem: []string{"question"}, Answer: "final_answer"},
		{Name: "nemo-skills", ID: "id", Problem: []string{"problem"}, Answer: "expected_answer"},
		{Name: "math-500", ID: "unique_id", Problem: []string{"problem"}, Answer: "answer", Difficulty: "level",
			Target: "solution"},
		{Name: "rated", ID: "id", Problem: []string{"problem"}, Answer: "answer", Difficulty: "difficulty"},
		{Name: "problem", ID: "id", Problem: []string{"problem"}, Answer: "answer", Target: "solution"},
		{Name: "hub-aime", ID: "ID", Problem: []string{"Problem"}, Answer: "Answer"},
		{Name: "math", ID: "idx", Problem: []string{"problem"}, Answer: "solution", Within: Box, Difficulty: "level",
			Target: "solution"},
		{Name: "gsm8k", ID: "id", Problem: []string{"question"}, Answer: "answer", Within: Hash, Target: "answer"},
		{Name: "question", ID: "id", Problem: []string{"question"}, Answer: "answer"},
		{Name: "prompt", ID: "id", Problem: []string{"prompt"}, Answer: "answer"},
		{Name: "messages", ID: "id", Problem: []string{"messages"}, Answer: "answer"},
	}
}

// Detect finds the layout of a row. The error lists what was looked for.
func Detect(r rows.Row) (Layout, error) {
	var wanted []string
	for _, l := range Known() {
		if r.Has(append([]string{l.Answer}, l.Problem...)...) && l.fits(r) {
			return l, nil
		}
		wanted = append(wanted, strings.Join(l.Problem, "+")+" with "+l.Answer)
	}
	return Layout{}, r.Errorf("", "no known layout of problems; looked for the fields %s", strings.Join(wanted, ", "))
}

// fits reports whether the row has what tells this layout from another with the same
// required fields.
func (l Layout) fits(r rows.Row) bool {
	if l.Within == Hash {
		s, err := r.Text(l.Answer)
		return err == nil && strings.Contains(s, string(Hash))
	}
	return l.Difficulty == "" || r.Has(l.Difficulty)
}

// Parse reads a problem. Its error is a *rows.Error.
func (l Layout) Parse(r rows.Row) (rollout.Problem, error) {
	var p rollout.Problem
	var facts Facts
	var err error
	if err := l.problem(r, &p); err != nil {
		return p, err
	}
	answers, err := l.answers(r)
	if err != nil {
		return p, err
	}
	p.Answer, facts.Answers = answers[0], answers[1:]
	p.Tools = Tools(r)
	p.ID = strconv.Itoa(r.Index)
	id := l.ID
	if !r.Has(id) {
		id = "id"
	}
	for to, field := range map[*string]string{&p.ID: id, &p.Cluster: l.Cluster, &facts.Source: l.Source} {
		if r.Has(field) {
			if *to, err = r.Text(field); err != nil {
				return p, err
			}
		}
	}
	if p.ID == "" {
		return p, r.Errorf(l.ID, "an empty id")
	}
	if l.Difficulty != "" && r.Has(l.Difficulty) {
		if facts.Difficulty, err = difficulty(r, l.Difficulty); err != nil {
			return p, err
		}
	}
	if p.Target == "" {
		p.Target = l.target(r)
	}
	if len(facts.Answers) > 0 || facts.Source != "" || facts.Difficulty != nil {
		p.Data, err = json.Marshal(facts)
	}
	return p, err
}

// problem is the text of the problem; of a chat the last message of the user, and the
// chat.
func (l Layout) problem(r rows.Row, p *rollout.Problem) (err error) {
	if v, _ := r.Value(l.Problem[0]); len(l.Problem) == 1 {
		if _, ok := v.([]any); ok {
			return chat(r, l.Problem[0], p)
		}
	}
	var parts []string
	for _, field := range l.Problem {
		s, err := r.Text(field)
		if err != nil {
			return err
		}
		parts = append(parts, strings.TrimSpace(s))
	}
	if p.Prompt = strings.Join(parts, " "); strings.TrimSpace(p.Prompt) == "" {
		return r.Errorf(l.Problem[0], "an empty problem")
	}
	if v, _ := r.Value("messages"); l.Name == "prompt" { // a problem as package task writes it
		if _, ok := v.([]any); ok {
			p.Messages, err = Messages(r, "messages")
		}
	}
	return err
}

// chat reads a list of messages. What the assistant says last, where it has the last
// word, is the target.
func chat(r rows.Row, field string, p *rollout.Problem) error {
	list, err := Messages(r, field)
	if err != nil {
		return err
	}
	if n := len(list) - 1; n > 0 && list[n].Role == "assistant" {
		p.Target = list[n].Content
		list = list[:n]
	}
	for _, m := range list {
		if m.Role == "user" {
			p.Prompt = contentText(m)
		}
	}
	if p.Prompt == "" {
		return r.Errorf(field, "no message of the user")
	}
	if !rollout.Plain(list) {
		p.Messages = list
	}
	return nil
}

// Messages reads a field that is a list of chat messages. The error is a *rows.Error.
func Messages(r rows.Row, field string) ([]rollout.Message, error) {
	raw, err := r.Raw(field)
	if err != nil {
		return nil, err
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, r.Errorf(field, "no list of messages with role and content")
	}
	list := make([]rollout.Message, len(items))
	for i, item := range items {
		if err := json.Unmarshal(item, &list[i]); err != nil {
			return nil, r.Errorf(field, "message %d: %w", i+1, err)
		}
	}
	return list, nil
}

// contentText is what a message says: its text, or the texts among its parts.
func contentText(m rollout.Message) string {
	var parts []struct {
		Text string `json:"text"`
	}
	if m.Parts == nil || json.Unmarshal(m.Parts, &parts) != nil {
		return m.Content
	}
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(part.Text)
	}
	return b.String()
}

// target is a right completion, if the row has one: under a name that is ours, or where
// the layout has it.
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

func (l Layout) answers(r rows.Row) ([]string, error) {
	texts, err := r.Texts(l.Answer)
	if err != nil {
		return nil, err
	}
	for i, s := range texts {
		switch l.Within {
		case Hash:
			k := strings.LastIndex(s, string(Hash))
			if k < 0 {
				return nil, r.Errorf(l.Answer, "no #### in it, behind which the answer stands")
			}
			s = s[k+len(Hash):]
		case Box:
			box, ok := peer.LastBoxedOnly(s)
			if !ok {
				return nil, r.Errorf(l.Answer, "no \\boxed{…} in it, which holds the answer")
			}
			s = unbox(box)
		}
		if texts[i] = strings.TrimSpace(s); texts[i] == "" {
			return nil, r.Errorf(l.Answer, "an empty answer")
		}
	}
	if len(texts) == 0 {
		return nil, r.Errorf(l.Answer, "no answer in the list")
	}
	return texts, nil
}

// unbox takes the content out of \boxed{…}, \fbox{…} or "\boxed …".
func unbox(s string) string {
	if _, inner, ok := strings.Cut(s, "{"); ok && strings.HasSuffix(s, "}") {
		return inner[:len(inner)-1]
	}
	return strings.TrimPrefix(s, "\\boxed ")
}

// difficulty reads 3, "3" or "Level 3"; "Level ?" of some MATH rows is none.
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

// SetFacts gives a problem its gold answers and source; golds has at least one.
func SetFacts(p *rollout.Problem, golds []string, source string) (err error) {
	p.Answer = golds[0]
	if len(golds) > 1 || source != "" {
		p.Data, err = json.Marshal(Facts{Answers: golds[1:], Source: source})
	}
	return err
}
