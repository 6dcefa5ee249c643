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
	Answers    []string        `json:"answers,omitempty"` // further gold answers, as right as the first
	Source     string          `json:"source,omitempty"`
	Difficulty *float64        `json:"difficulty,omitempty"`
	Messages   json.RawMessage `json:"messages,omitempty"` // the chat, where it is more than one message
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
		{Name: "verl", ID: "extra_info.index", Problem: []string{"prompt"}, Answer: "reward_model.ground_truth", Source: "data_source"},
		{Name: "svamp", ID: "ID", Problem: []string{"Body", "Question"}, Answer: "Answer"},
		{Name: "olympiadbench", ID: "id", Problem: []string{"question"}, Answer: "final_answer"},
		{Name: "nemo-skills", ID: "id", Problem: []string{"problem"}, Answer: "expected_answer"},
		{Name: "math-500", ID: "unique_id", Problem: []string{"problem"}, Answer: "answer", Difficulty: "level"},
		{Name: "rated", ID: "id", Problem: []string{"problem"}, Answer: "answer", Difficulty: "difficulty"},
		{Name: "problem", ID: "id", Problem: []string{"problem"}, Answer: "answer"},
		{Name: "hub-aime", ID: "ID", Problem: []string{"Problem"}, Answer: "Answer"},
		{Name: "math", ID: "idx", Problem: []string{"problem"}, Answer: "solution", Within: Box, Difficulty: "level"},
		{Name: "gsm8k", ID: "id", Problem: []string{"question"}, Answer: "answer", Within: Hash},
		{Name: "question", ID: "id", Problem: []string{"question"}, Answer: "answer"},
		{Name: "prompt", ID: "id", Problem: []string{"prompt"}, Answer: "answer"},
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
	if p.Prompt, facts.Messages, err = l.problem(r); err != nil {
		return p, err
	}
	answers, err := l.answers(r)
	if err != nil {
		return p, err
	}
	p.Answer, facts.Answers = answers[0], answers[1:]
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
	if len(facts.Answers) > 0 || facts.Source != "" || facts.Difficulty != nil || facts.Messages != nil {
		p.Data, err = json.Marshal(facts)
	}
	return p, err
}

// problem is the text of the problem: of a chat, the last message of the user.
func (l Layout) problem(r rows.Row) (text string, chat json.RawMessage, err error) {
	if v, _ := r.Value(l.Problem[0]); len(l.Problem) == 1 {
		if _, ok := v.([]any); ok {
			return messages(r, l.Problem[0])
		}
	}
	var parts []string
	for _, field := range l.Problem {
		s, err := r.Text(field)
		if err != nil {
			return "", nil, err
		}
		parts = append(parts, strings.TrimSpace(s))
	}
	if text = strings.Join(parts, " "); strings.TrimSpace(text) == "" {
		return "", nil, r.Errorf(l.Problem[0], "an empty problem")
	}
	return text, nil, nil
}

func messages(r rows.Row, field string) (text string, chat json.RawMessage, err error) {
	list, err := r.Objects(field)
	if err != nil {
		return "", nil, err
	}
	for _, m := range list {
		role, err := m.Text("role")
		if err != nil {
			return "", nil, err
		}
		content, err := m.Text("content")
		if err != nil {
			return "", nil, err
		}
		if role == "user" {
			text = content
		}
	}
	if text == "" {
		return "", nil, r.Errorf(field, "no message of the user")
	}
	if len(list) > 1 {
		v, _ := r.Value(field)
		chat, err = json.Marshal(v)
	}
	return text, chat, err
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
