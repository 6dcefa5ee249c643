package layout

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"exp/eval/grade/peer"
	"exp/eval/rows"
)

// Known returns the layouts of published files in the order Detect tries them.
func Known() []Layout {
	return slices.Concat(verlLayouts(), pictureLayouts(), choiceLayouts(), plainLayouts())
}

// verlLayouts lists the layouts of verl's rows, whose fields nobody else has.
func verlLayouts() []Layout {
	return []Layout{
		{Name: "verl", ID: "extra_info.index", Problem: []string{"prompt"}, Answer: "reward_model.ground_truth",
			Source: "data_source"},
		{Name: "verl-messages", ID: "extra_info.index", Problem: []string{"messages"},
			Answer: "reward_model.ground_truth", Source: "data_source"},
	}
}

// plainLayouts lists the layouts of problems without options.
func plainLayouts() []Layout {
	return []Layout{
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
		needs := append([]string{l.Answer}, l.Problem...)
		if l.Tell != nil {
			needs = needs[:1] // a picture may hold the question
		}
		if r.Has(needs...) && l.fits(r) {
			return l.choosing(r).illustrated(r), nil
		}
	}
	return Layout{}, r.Errorf("", "no known layout of problems: %s. The problem is read from %s, the answer from %s, "+
		"multiple-choice questions from the columns of published files; other columns need another name",
		columnsOf(r), orOf(problemColumns()), orOf(answerColumns()))
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
			l := Layout{Name: truthColumn, ID: "id", Problem: []string{c}, Answer: truthColumn}
			return l.choosing(r).illustrated(r), nil
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
	for _, l := range slices.Concat(verlLayouts(), plainLayouts()) {
		if !slices.Contains(list, l.Answer) {
			list = append(list, l.Answer)
		}
	}
	return list
}

// columnsOf says which columns a row has, and what looks wrong with them.
func columnsOf(r rows.Row) string {
	var list []string
	known := append(problemColumns(), answerColumns()...)
	for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
		note := ""
		plain := strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(name))
		switch {
		case !slices.Contains(known, name) && slices.Contains(known, plain):
			note = " (known as " + plain + ")"
		case r.Empty(name):
			note = " (empty)"
		case len(r.Fields) == 1 && strings.ContainsAny(name, ";\t|"):
			note = " (one column: a .csv separates columns by commas, a .tsv by tabs)"
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
		if l.Query != "" {
			l.Query = column
		} else {
			l.Problem = []string{column}
		}
		if r.Has(l.Answer) && l.fits(r) {
			return l.choosing(r).illustrated(r), nil
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
		if !r.Has(name) {
			continue
		}
		l = Layout{Name: name, ID: "extra_info.index", Problem: []string{name}, Source: "data_source", Open: true}
		return l.choosing(r).illustrated(r), nil
	}
	return l, r.Errorf("", "no column with a prompt; looked for %s; data.prompt_key names another",
		strings.Join(columns, ", "))
}

// fits reports whether the row has the fields that tell this layout from others with the same required
// fields.
func (l Layout) fits(r rows.Row) bool {
	if l.Tell != nil {
		for _, column := range l.Tell {
			if !has(r.Fields, column) {
				return false
			}
		}
		return !l.Only || len(r.Fields) == len(l.Tell)
	}
	if l.Choices != nil {
		return l.offers(r)
	}
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
