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
	"maps"
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
	Problem    []string // texts, joined by a space; or one list of chat messages
	Answer     string   // a text, a number, or a list of equally right answers
	Within     Within   // where the answer stands in that field
	Cluster    string   // optional: problems of one cluster are not independent
	Difficulty string   // optional: a number, or a text with one ("Level 3")
	Source     string   // optional: the data set; verl picks its grader by it
	Target     string   // optional: a worked solution to learn from
	Keep       []string // further columns to keep in Facts.Columns
	Images     *Images  // nil: rows with images are refused
	Open       bool     // a problem may lack an answer
	Verifiable bool     // a problem has Facts.Instructions
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

// Known returns the layouts of published files in the order Detect tries them.
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
		{Name: "prompt-gold", ID: "id", Problem: []string{"prompt"}, Answer: "gold"},
		{Name: "question-gold", ID: "id", Problem: []string{"question"}, Answer: "gold"},
		{Name: "problem-gold", ID: "id", Problem: []string{"problem"}, Answer: "gold"},
		// NuminaMath, and the columns that TRL's rewards take
		{Name: "problem-boxed", ID: "id", Problem: []string{"problem"}, Answer: "solution", Within: Box,
			Target: "solution"},
		{Name: "prompt-boxed", ID: "id", Problem: []string{"prompt"}, Answer: "solution", Within: Box,
			Target: "solution"},
		{Name: "prompt-solution", ID: "id", Problem: []string{"prompt"}, Answer: "solution"},
	}
}

// Detect finds the layout of a row among the known ones. On failure the error says what the row has and what a row
// may have.
func Detect(r rows.Row) (Layout, error) {
	for _, l := range Known() {
		if r.Has(append([]string{l.Answer}, l.Problem...)...) && l.fits(r) {
			return l, nil
		}
	}
	return Layout{}, r.Errorf("", "no known layout of problems: %s. The problem is read from %s, the answer from %s; "+
		"other columns need another name", columnsOf(r), orOf(problemColumns()), orOf(answerColumns()))
}

// detectProblem is Detect or DetectAt for problems whose answer is needed. It also takes the columns of different
// layouts together, such as a question with its expected_answer, and a ground_truth.
func detectProblem(r rows.Row, column string) (Layout, error) {
	l, err := DetectAt(r, column)
	if err == nil || column != "" && !r.Has(column) || withoutAnswer(r) { // a later row may tell
		return l, err
	}
	columns := problemColumns()
	if column != "" {
		columns = []string{column}
	}
	for _, c := range columns {
		if !r.Has(c) {
			continue
		}
		if found, err := DetectAt(r, c); err == nil {
			return found, nil
		}
		if r.Has(truthColumn) {
			return Layout{Name: truthColumn, ID: "id", Problem: []string{c}, Answer: truthColumn}, nil
		}
	}
	return l, err
}

// truthColumn is a column of answers in examples of TRL and in data of open-instruct. Task prompts keep it for a
// program alone (data.keep), so it is in no known layout.
const truthColumn = "ground_truth"

// problemColumns are columns that hold a problem alone.
func problemColumns() []string { return []string{"question", "problem", "prompt", "messages"} }

// answerColumns are the columns of answers, the usual ones first.
func answerColumns() []string {
	list := []string{"answer", "gold", truthColumn}
	for _, l := range Known() {
		if !slices.Contains(list, l.Answer) {
			list = append(list, l.Answer)
		}
	}
	return list
}

// columnsOf says which columns a row has, and what looks wrong with them.
func columnsOf(r rows.Row) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
		note := ""
		switch {
		case r.Empty(name):
			note = " (empty)"
		case len(r.Fields) == 1 && strings.ContainsAny(name, ";\t|"):
			note = " (one column: commas separate those of a .csv, tabs those of a .tsv)"
		}
		list = append(list, name+note)
	}
	if most := 12; len(list) > most {
		list = append(list[:most], fmt.Sprintf("%d more", len(list)-most))
	}
	return "the row has " + strings.Join(list, ", ")
}

// orOf joins names: "a, b or c".
func orOf(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// DetectAt finds the layout of a row with its problem in a column, and its answer where a known
// layout has it. Without a column it is Detect.
func DetectAt(r rows.Row, column string) (Layout, error) {
	if column == "" {
		return Detect(r)
	}
	if !r.Has(column) {
		return Layout{}, r.Errorf(column, "%w: the column with the prompt", rows.ErrMissing)
	}
	var own, marked, others []Layout
	for _, l := range Known() {
		switch {
		case slices.Equal(l.Problem, []string{column}):
			own = append(own, l)
		case l.Within == Hash: // tells more than the name of the field
			marked = append(marked, l)
		default:
			others = append(others, l)
		}
	}
	for _, l := range slices.Concat(own, marked, others) {
		l.Problem = []string{column}
		if r.Has(l.Answer) && l.fits(r) {
			return l, nil
		}
	}
	return Layout{}, r.Errorf("", "no field with the answer: %s. It is read from %s", columnsOf(r),
		orOf(answerColumns()))
}

// DetectPrompt finds the layout of a row whose answer, if any, only the run's reward reads: a known one, or else the
// problem's column alone.
func DetectPrompt(r rows.Row, column string) (Layout, error) {
	l, err := DetectAt(r, column)
	l.Open = true
	if err == nil || errors.Is(err, rows.ErrMissing) {
		return l, err
	}
	columns := []string{column}
	if column == "" {
		columns = []string{"prompt", "messages", "problem", "question", "instruction", "query"}
	}
	for _, name := range columns {
		if r.Has(name) {
			return Layout{Name: name, ID: "extra_info.index", Problem: []string{name}, Source: "data_source",
				Open: true}, nil
		}
	}
	return l, r.Errorf("", "no column with a prompt; looked for %s; data.prompt_key names another",
		strings.Join(columns, ", "))
}

// idField returns the field that a row has its id in; the row may lack it.
func (l Layout) idField(r rows.Row) string {
	if r.Has(l.ID) {
		return l.ID
	}
	return "id"
}

// fits reports whether the row has the fields that tell this layout from others with the same required
// fields.
func (l Layout) fits(r rows.Row) bool {
	if l.Within == Hash {
		s, err := r.Text(l.Answer)
		return err == nil && strings.Contains(s, string(Hash))
	}
	if l.Within == Box && l.Difficulty == "" {
		s, err := r.Text(l.Answer)
		_, boxed := peer.LastBoxedOnly(s)
		return err == nil && boxed
	}
	return l.Difficulty == "" || r.Has(l.Difficulty)
}

// Parse reads a problem. Errors are *rows.Error.
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
		l.Verifiable {
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
	return l.Images.illustrate(r, field, p)
}

// text reads a problem that is a text, and the messages of one that package task wrote, whose field it returns.
func (l Layout) text(r rows.Row, p *rollout.Problem) (field string, err error) {
	var parts []string
	for _, field := range l.Problem {
		s, err := r.Text(field)
		if err != nil {
			return "", err
		}
		parts = append(parts, strings.TrimSpace(s))
	}
	if p.Prompt = strings.Join(parts, " "); strings.TrimSpace(p.Prompt) == "" {
		return "", r.Errorf(l.Problem[0], "empty problem")
	}
	if v, _ := r.Value("messages"); l.Name == "prompt" { // a problem as package task writes it
		if _, ok := v.([]any); ok {
			field = "messages"
			p.Messages, err = l.messages(r, field)
		}
	}
	return field, err
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
			p.Prompt = contentText(m)
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
