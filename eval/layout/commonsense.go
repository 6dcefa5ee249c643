package layout

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"exp/eval/rows"
)

// commonsenseLayouts lists the layouts of questions of common sense whose rows need more than their columns' names, as
// lm-evaluation-harness asks them.
func commonsenseLayouts() []Layout {
	question := []string{"question"}
	columns := func(gold goldForm, names ...string) *Choices { return &Choices{Options: names, Gold: gold} }
	return []Layout{
		{Name: "winogrande", ID: "qID", Problem: []string{"sentence"}, Answer: "answer",
			Choices: columns(goldOrdinal, "option1", "option2"), Tell: []string{"sentence", "option1", "option2"}},
		{Name: "boolq", ID: "idx", Problem: question, Answer: "answer", Choices: columns(goldNumber, "options"),
			Tell: []string{"passage", "question", "answer"}, Adapt: boolQ},
		{Name: "boolq-label", ID: "idx", Problem: question, Answer: "label", Choices: columns(goldNumber, "options"),
			Tell: []string{"passage", "question", "label"}, Adapt: boolQ},
		{Name: "siqa", ID: "id", Problem: question, Answer: "label",
			Choices: columns(goldOrdinal, "answerA", "answerB", "answerC"),
			Tell:    []string{"context", "question", "answerA", "answerB", "answerC"}, Adapt: siqa},
		{Name: "copa", ID: "idx", Problem: question, Answer: "label",
			Choices: columns(goldNumber, "choice1", "choice2"), Adapt: copa,
			Tell: []string{"premise", "question", "choice1", "choice2"}},
	}
}

// brackets match the marks of WikiHow in HellaSwag's texts, such as [step].
var brackets = regexp.MustCompile(`\[.*?\]`)

// hellaSwag puts the activity before the context, and takes the marks off both and the endings.
func hellaSwag(r rows.Row) (rows.Row, error) {
	bare := func(text string) string {
		text = strings.ReplaceAll(strings.TrimSpace(text), " [title]", ". ")
		return strings.ReplaceAll(brackets.ReplaceAllString(text, ""), "  ", " ")
	}
	if r.Has("activity_label", "ctx_a", "ctx_b") {
		activity, _ := r.Text("activity_label")
		a, _ := r.Text("ctx_a")
		b, _ := r.Text("ctx_b")
		first, size := utf8.DecodeRuneInString(b)
		if b != "" {
			b = string(unicode.ToUpper(first)) + strings.ToLower(b[size:])
		}
		r = with(r, "ctx", bare(activity+": "+a+" "+b))
	}
	endings, err := r.Texts("endings")
	list := make([]any, len(endings))
	for i, text := range endings {
		list[i] = bare(text)
	}
	return with(r, "endings", list), err
}

// boolQ puts the passage before the question and offers no and yes.
func boolQ(r rows.Row) (rows.Row, error) {
	passage, err := r.Text("passage")
	if err != nil {
		return r, err
	}
	question, err := r.Text("question")
	if err != nil {
		return r, err
	}
	r = with(with(r, "question", passage+"\nQuestion: "+question+"?"), "options", []any{"no", "yes"})
	switch answer := r.Fields["answer"].(type) {
	case bool:
		number := "0"
		if answer {
			number = "1"
		}
		r = with(r, "answer", number)
	case string: // of a CSV
		number, ok := map[string]string{"false": "0", "true": "1"}[strings.ToLower(answer)]
		if ok {
			r = with(r, "answer", number)
		}
	}
	return withheld(r, "label"), nil
}

// siqa puts the context before the question.
func siqa(r rows.Row) (rows.Row, error) {
	context, err := r.Text("context")
	if err != nil {
		return r, err
	}
	question, err := r.Text("question")
	return with(r, "question", strings.TrimSpace(context)+" "+question), err
}

// copa makes the premise the beginning of a sentence that its cause or its effect ends.
func copa(r rows.Row) (rows.Row, error) {
	premise, err := r.Text("premise")
	if err != nil {
		return r, err
	}
	asked, err := r.Text("question")
	if err != nil {
		return r, err
	}
	link, ok := map[string]string{"cause": "because", "effect": "therefore"}[asked]
	if !ok {
		return r, r.Errorf("question", "%q is neither cause nor effect", asked)
	}
	r = with(r, "question", strings.TrimSuffix(strings.TrimSpace(premise), ".")+" "+link)
	for _, column := range []string{"choice1", "choice2"} {
		text, err := r.Text(column)
		if err != nil {
			return r, err
		}
		first, size := utf8.DecodeRuneInString(text)
		r = with(r, column, string(unicode.ToLower(first))+text[size:])
	}
	return withheld(r, "label"), nil
}

// withheld returns a row without an answer that is -1, as SuperGLUE's test splits have them.
func withheld(r rows.Row, column string) rows.Row {
	if text, err := r.Text(column); err == nil && text == "-1" {
		return with(r, column, nil)
	}
	return r
}
