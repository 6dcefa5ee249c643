package layout

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"exp/eval/rows"
	"exp/train/rollout"
)

// pictureLayouts lists the layouts of benchmarks of problems about pictures, in the columns of their files on the hub.
func pictureLayouts() []Layout {
	image := func(column string) *Pictures { return &Pictures{Columns: []string{column}} }
	maybe := &Pictures{Columns: []string{"image"}, Optional: true}
	options := func(column string, gold goldForm) *Choices {
		return &Choices{Options: []string{column}, Gold: gold}
	}
	question := []string{"question"}
	seven := &Pictures{Marked: true, Optional: true,
		Columns: strings.Fields("image_1 image_2 image_3 image_4 image_5 image_6 image_7")}
	return []Layout{
		{Name: "mathvista", ID: "pid", Problem: question, Answer: "answer", Source: "metadata.task", Query: "query",
			Decimals: "decimals", Choices: options("choices", goldText), Pictures: image("decoded_image"),
			Tell:    []string{"decoded_image", "choices", "question_type", "answer_type"},
			Graders: []string{"exp", "mathvista"}, Adapt: mathVista},
		{Name: "mathvision", ID: "id", Problem: question, Answer: "answer", Source: "subject", Difficulty: "level",
			Target: "solution", Choices: options("options", anyGold), Pictures: image("decoded_image"),
			Tell: []string{"decoded_image", "options", "level", "subject"}, Graders: []string{"exp", "mathvision"}},
		{Name: "mathverse", ID: "sample_index", Problem: question, Answer: "answer", Source: "problem_version",
			Cluster: "problem_index", Query: "query_wo", Choices: options("choices", anyGold), Pictures: maybe,
			Tell:    []string{"problem_version", "query_wo", "question_type"},
			Graders: []string{"exp", "mathvision"}, Adapt: mathVerse},
		{Name: "mmmu", ID: "id", Problem: question, Answer: "answer", Source: "subject",
			Choices: options("options", anyGold), Pictures: seven, Graders: []string{"exp", "mmmu"}, Adapt: mmmu,
			Tell: []string{"image_1", "image_7", "options", "question_type"}},
		{Name: "mmmu-pro", ID: "id", Problem: question, Answer: "answer", Source: "subject",
			Choices: options("options", anyGold), Pictures: seven, Graders: []string{"exp", "mmmu_pro"}, Adapt: mmmu,
			Tell: []string{"image_1", "image_7", "options", "subject"}},
		{Name: "mmmu-pro-vision", ID: "id", Problem: question, Answer: "answer", Source: "subject",
			Choices: options("options", anyGold), Pictures: image("image"), Graders: []string{"exp", "mmmu_pro"},
			Tell: []string{"id", "image", "options", "answer", "subject"}, Only: true, Adapt: mmmu},
		{Name: "ai2d", Problem: question, Answer: "answer", Choices: options("options", goldNumber),
			Pictures: image("image"), Tell: []string{"question", "options", "answer", "image"}, Only: true,
			Graders: []string{"exp", "mmmu"}},
		{Name: "scienceqa", Problem: question, Answer: "answer", Source: "subject", Target: "solution",
			Choices: options("choices", anyGold), Pictures: maybe, Graders: []string{"exp", "mmmu"}, Adapt: scienceQA,
			Tell: []string{"image", "question", "choices", "hint", "lecture"}},
		{Name: "chartqa", Problem: question, Answer: "answer", Source: "type", Pictures: image("image"),
			Tell: []string{"type", "question", "answer", "image"}, Only: true, Graders: []string{"exp", "chartqa"}},
		{Name: "chartqa-labels", Problem: []string{"query"}, Answer: "label", Source: "human_or_machine",
			Pictures: image("image"), Tell: []string{"query", "label", "human_or_machine", "image"},
			Graders: []string{"exp", "chartqa"}, Adapt: chartQA},
		{Name: "wemath", Problem: question, Answer: "answer", Source: "key", Choices: options("choices", anyGold),
			Pictures: image("image_path"), Tell: []string{"image_path", "option", "key", "knowledge concept"},
			Graders: []string{"exp", "mmmu"}, Adapt: weMath},
		{Name: "docvqa", ID: "questionId", Problem: question, Answer: "answers", Cluster: "docId",
			Pictures: image("image"), Tell: []string{"questionId", "question", "answers", "image"},
			Graders: []string{"exp", "anls"}},
		{Name: "vqav2", ID: "question_id", Problem: question, Answer: "answers", Cluster: "image_id",
			Source: "answer_type", Pictures: image("image"), Graders: []string{"exp", "vqav2"}, Adapt: vqav2,
			Tell: []string{"question_id", "question", "answers", "image", "image_id", "multiple_choice_answer"}},
		{Name: "textvqa", ID: "question_id", Problem: question, Answer: "answers", Cluster: "image_id",
			Pictures: image("image"), Tell: []string{"question_id", "question", "answers", "image", "image_id"},
			Graders: []string{"exp", "textvqa"}},
	}
}

// with returns a row with another value in a column.
func with(r rows.Row, column string, value any) rows.Row {
	r.Fields = maps.Clone(r.Fields)
	r.Fields[column] = value
	return r
}

// mathVista puts the unit into the question, which the column query has with everything else, and says how many
// decimals a number has.
func mathVista(r rows.Row) (rows.Row, error) {
	if unit, err := r.Text("unit"); err == nil && unit != "" {
		question, err := r.Text("question")
		if err != nil {
			return r, err
		}
		r = with(r, "question", question+" (Unit: "+unit+")")
	}
	kind, err := r.Text("answer_type")
	switch {
	case err != nil:
		return r, err
	case kind == "integer":
		r = with(r, "decimals", "0")
	case kind == "float":
		precision, err := r.Number("precision")
		if err != nil {
			return r, err
		}
		r = with(r, "decimals", strconv.Itoa(int(precision)))
	}
	return r, nil
}

// decimals reads how many decimals an answer is asked with; nil if the row does not say.
func (l Layout) decimals(r rows.Row) *int {
	if l.Decimals == "" {
		return nil
	}
	text, _ := r.Text(l.Decimals)
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil
	}
	return &n
}

// choicesInText matches the options at the end of MathVerse's questions.
var choicesInText = regexp.MustCompile(`(?s)^(.*?)\s*\bChoices?:\s*(.*)$`)

// mathVerse reads the options from the text of the question, or from the one for judges where a picture shows it. A
// few answers are several letters on lines of their own.
func mathVerse(r rows.Row) (rows.Row, error) {
	question, _ := r.Text("question")
	if kind, _ := r.Text("question_type"); kind != "multi-choice" {
		return r, nil
	}
	if answer, _ := r.Text("answer"); strings.Contains(answer, "\n") {
		return with(r, "answer", strings.Join(strings.Fields(answer), ", ")), nil
	}
	for _, column := range []string{"question", "question_for_eval", "query_wo"} {
		text, _ := r.Text(column)
		m := choicesInText.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		if list := lettered(m[2]); list != nil {
			if column == "question" {
				question = m[1]
			}
			return with(with(r, "question", question), "choices", list), nil
		}
	}
	return r, nil
}

// letterMark matches the letter of an option at the beginning of a line or behind a semicolon.
var letterMark = regexp.MustCompile(`(?:^|[;\n])\s*([A-Z])[.:]`)

// lettered returns the options of a text such as "A. 3; B. 4" or "A:3\nB:4"; nil unless its letters are A, B, … in
// order.
func lettered(text string) (list []any) {
	marks := letterMark.FindAllStringSubmatchIndex(text, -1)
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		option := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text[m[1]:end]), ";"))
		if text[m[2]:m[3]] != rollout.Letter(i) || option == "" || i == 0 && m[0] > 0 {
			return nil
		}
		list = append(list, option)
	}
	if len(list) < 2 {
		return nil
	}
	return list
}

// mmmuSubject matches the ids of MMMU, such as validation_Computer_Science_9.
var mmmuSubject = regexp.MustCompile(`^[a-z]+_(.+)_[0-9]+$`)

// mmmu reads options and answers that are Python's spelling of lists, and the subject in the id. A question within
// the picture is empty, and "?" in the test split means that nobody published the answer.
func mmmu(r rows.Row) (rows.Row, error) {
	for _, column := range []string{"options", "answer"} {
		text, isText := r.Fields[column].(string)
		if !isText || column == "answer" && !strings.HasPrefix(text, "[") {
			continue
		}
		v, err := parseLiteral(text)
		list, isList := v.([]any)
		if len(list) == 1 { // MMMU-Pro has a list of options within one
			if inner, ok := list[0].([]any); ok {
				list = inner
			}
		}
		if err == nil && isList {
			r = with(r, column, list)
		} else if column == "options" {
			return r, r.Errorf(column, "%.60q is not a list of options, as Python or JSON spells it", text)
		}
	}
	if r.Fields["answer"] == "?" {
		r = with(r, "answer", nil)
	}
	if !r.Has("question") {
		r = with(r, "question", "")
	}
	id, _ := r.Text("id")
	if m := mmmuSubject.FindStringSubmatch(id); m != nil && !r.Has("subject") {
		r = with(r, "subject", m[1])
	}
	return r, nil
}

// scienceQA puts the hint before the question.
func scienceQA(r rows.Row) (rows.Row, error) {
	hint, _ := r.Text("hint")
	if hint == "" {
		return r, nil
	}
	question, err := r.Text("question")
	return with(r, "question", "Context: "+hint+"\n"+question), err
}

// chartQA names who wrote the question, which is a number in the file.
func chartQA(r rows.Row) (rows.Row, error) {
	who, _ := r.Text("human_or_machine")
	if i := slices.Index([]string{"0", "1"}, who); i >= 0 {
		r = with(r, "human_or_machine", []string{"human", "machine"}[i])
	}
	return r, nil
}

// vqav2 reads the answers of ten people, which are objects in the file; the one that most gave comes first.
func vqav2(r rows.Row) (rows.Row, error) {
	people, err := r.Objects("answers")
	if err != nil {
		return r, err
	}
	most, err := r.Text("multiple_choice_answer")
	if err != nil {
		return r, err
	}
	list := make([]any, len(people))
	for i, p := range people {
		answer, err := p.Text("answer")
		if err != nil {
			return r, err
		}
		list[i] = answer
	}
	if i := slices.Index(list, any(most)); i > 0 {
		list[0], list[i] = list[i], list[0]
	}
	return with(r, "answers", list), nil
}

// weMath reads the options from the one text that has them; another text stays part of the question.
func weMath(r rows.Row) (rows.Row, error) {
	text, err := r.Text("option")
	if err != nil {
		return r, err
	}
	if list := lettered(text); list != nil {
		return with(r, "choices", list), nil
	}
	question, err := r.Text("question")
	return with(r, "question", question+"\n"+text), err
}
