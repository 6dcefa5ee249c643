package layout

import (
	"strings"
	"testing"

	"exp/eval/rows"
	"exp/train/rollout"
)

// The rows have the fields of the published files, with other questions.
func TestChoices(t *testing.T) {
	const text = "Which?\n\nA) one\nB) two\nC) three"
	for _, tt := range []struct{ name, row, text, golds string }{
		{"mmlu", `{"question":"Which?","subject":"s","choices":["one","two","three"],"answer":1}`, text, "B|(B) two of s"},
		{"mmlu", `{"question":"Which?","choices":["2","1","0"],"answer":2}`, "Which?\n\nA) 2\nB) 1\nC) 0", "C|(C) 0"},
		{"mmlu", `{"question":"Which?","choices":["2","1","0"],"answer":"2"}`, "Which?\n\nA) 2\nB) 1\nC) 0", "A|(A) 2"},
		{"mmlu", `{"question":"Which?","choices":["one","two","three"],"answer":"2"}`, text, "C|(C) three"},
		{"mmlu", `{"question":"Which?","choices":["one","two","three"],"answer":" three "}`, text, "C|(C) three"},
		{"mmlu-pro", `{"question_id":7,"question":"Which?","options":["one","two","three"],"answer":"C","answer_index":2,"cot_content":""}`,
			text, "C|(C) three"},
		{"mmlu-pro", `{"question":"Which?","options":["one","two","three"],"answer":"(b)"}`, text, "B|(B) two"},
		{"mmlu-pro", `{"question":"Which?","options":["one","two","three"],"answer":["B"]}`, text, "B|(B) two"},
		{"aqua", `{"question":"Which?","options":["A)one","B)two","C)three"],"rationale":"r","correct":"A"}`, text, "A|(A) one"},
		{"aqua", `{"question":"Which?","options":["(A) one","(B) two","(C) three"],"correct":"A"}`, text, "A|(A) one"},
		{"arc", `{"id":"M_1","question":"Which?","choices":{"text":["one","two","three"],"label":["1","2","3"]},"answerKey":"2"}`,
			text, "B|(B) two"},
		{"arc", `{"question":"Which?","choices":{"text":["one","two","three"],"label":[1,2,3]},"answerKey":2}`, text, "B|(B) two"},
		{"arc", `{"question":"Which?","choices":{"text":["one","two","three"],"label":["A","B","C"]},"answerKey":2}`, text, "C|(C) three"},
		{"arc", `{"id":"M_1","question":"Which?","choices":{"text":["one","two","three"],"label":["A","B","C"]},"answerKey":"C"}`,
			text, "C|(C) three"},
		{"arc-lines", `{"id":"M_1","question":{"stem":"Which?","choices":[{"text":"one","label":"A"},{"text":"two","label":"B"},` +
			`{"text":"three","label":"C"}]},"answerKey":"B"}`,
			text, "B|(B) two"},
		{"openbookqa", `{"id":"7","question_stem":"Which?","choices":{"text":["one","two","three"],"label":["A","B","C"]},"answerKey":"A"}`,
			text, "A|(A) one"},
		{"medqa", `{"question":"Which?","answer":"two","options":{"B":"two","A":"one","C":"three"},"answer_idx":"B"}`, text, "B|(B) two"},
		{"supergpqa", `{"uuid":"u","question":"Which?","options":["one","two","three"],"answer":"three","answer_letter":"C"}`, text, "C|(C) three"},
		{"medmcqa", `{"id":"u","question":"Which?","opa":"one","opb":"two","opc":"three","opd":null,"cop":0}`, text, "A|(A) one"},
		{"ceval", `{"id":0,"question":"Which?","A":"one","B":"two","C":"three","D":"","answer":"B"}`, text, "B|(B) two"},
		{"cmmlu", `{"Question":"Which?","A":"one","B":"two","C":"three","Answer":"A"}`, text, "A|(A) one"},
		{"hellaswag", `{"ind":24,"ctx":"Which?","endings":["one","two","three"],"label":"2"}`, text, "C|(C) three"},
		{"piqa", `{"goal":"Which?","sol1":"one","sol2":"two","label":1}`, "Which?\n\nA) one\nB) two", "B|(B) two"},
		{"race", `{"article":"Read.","question":"Which?","options":["one","two","three"],"answer":"C"}`, "Read.\n\n" + text, "C|(C) three"},
		{"logiqa", `{"context":"Read.","query":"Which?","options":["one","two","three"],"correct_option":1}`, "Read.\n\n" + text, "B|(B) two"},
		{"gpqa", `{"Record ID":"r","Question":"Which?","Correct Answer":"two","Incorrect Answer 1":"one","Incorrect Answer 2":"three","Incorrect Answer 3":"four"}`,
			"Which?\n\nA) three\nB) two\nC) four\nD) one", "B|(B) two"},
		{"gpqa", `{"Question":"How many?","Correct Answer":3,"Incorrect Answer 1":"A","Incorrect Answer 2":"1","Incorrect Answer 3":"B"}`,
			"How many?\n\nA) 1\nB) B\nC) A\nD) 3", "D|(D) 3"},
		{"sciq", `{"question":"Which?","correct_answer":"two","distractor1":"one","distractor2":"three","distractor3":"four","support":""}`,
			"Which?\n\nA) three\nB) two\nC) four\nD) one", "B|(B) two"},
		{"truthfulqa", `{"question":"Which?","mc1_targets":{"choices":["two","one","three","four"],"labels":[1,0,0,0]}}`,
			"Which?\n\nA) three\nB) two\nC) four\nD) one", "B|(B) two"},
		{"truthfulqa", `{"question":"Which?","mc1_targets":{"choices":["two","one","three","four"],"labels":[1,0,1,0]}}`,
			"Which?\n\nA) three\nB) two\nC) four\nD) one", "A|(A) three|B|(B) two"},
		{"hellaswag", `{"ind":24,"activity_label":"Roof","ctx_a":"He [x y] climbs.","ctx_b":"he AND she [z]","ctx":"?","endings":["go up [title] Up","fall  [step] down","[a] [b]sit"],"label":"2"}`,
			"Roof: He climbs. He and she\n\nA) go up. Up\nB) fall  down\nC) sit", "C|(C) sit"},
		{"hellaswag", `{"ctx":"Roof: ","activity_label":"Roof","ctx_a":"He","ctx_b":"","endings":["a","b"],"label":0}`,
			"Roof: He\n\nA) a\nB) b", "A|(A) a"},
		{"winogrande", `{"sentence":"The _ is two.","option1":"one","option2":"two","answer":"2"}`, "The _ is two.\n\nA) one\nB) two", "B|(B) two"},
		{"winogrande", `{"sentence":"The _ is two.","option1":"2","option2":"1","answer":1}`, "The _ is two.\n\nA) 2\nB) 1", "A|(A) 2"},
		{"boolq", `{"question":"is it","passage":"It is.","answer":true}`, "It is.\nQuestion: is it?\n\nA) no\nB) yes", "B|(B) yes"},
		{"boolq", `{"question":"is it","passage":"It is.","answer":"False"}`, "It is.\nQuestion: is it?\n\nA) no\nB) yes", "A|(A) no"},
		{"boolq-label", `{"question":"is it","passage":"It is.","idx":0,"label":1}`, "It is.\nQuestion: is it?\n\nA) no\nB) yes", "B|(B) yes"},
		{"siqa", `{"context":"Two met. ","question":"Why?","answerA":"one","answerB":"two","answerC":"1","label":"1"}`,
			"Two met. Why?\n\nA) one\nB) two\nC) 1", "A|(A) one"},
		{"copa", `{"premise":"It fell.","choice1":"Water froze.","choice2":"Éva met it.","question":"cause","idx":3,"label":1}`,
			"It fell because\n\nA) water froze.\nB) éva met it.", "B|(B) éva met it."},
		{"copa", `{"premise":"It fell.","choice1":"1","choice2":"0","question":"effect","idx":3,"label":1}`,
			"It fell therefore\n\nA) 1\nB) 0", "B|(B) 0"},
		// options in layouts of plain problems
		{"nemo-skills", `{"problem":"Which?","expected_answer":"B","options":["one","two","three"]}`, text, "B|(B) two"},
		{"prompt", `{"prompt":"Which?","answer":"B","choices":["one","two","three"]}`, text, "B|(B) two"},
		// the answer of a solution is not compared with options, which its problem has in its text
		{"problem-boxed", `{"problem":"Which? A) one B) two","solution":"So \\boxed{B}.","options":["one","two"]}`, "Which? A) one B) two", "B"},
		{"svamp", `{"Body":"One, two.","Question":"Which?","Answer":2,"options":["1","2"]}`, "One, two. Which?", "2"},
		// no options
		{"question", `{"question":"Which?","choices":null,"answer":"4"}`, "Which?", "4"},
		{"question", `{"question":"Which?","options":[],"answer":"4"}`, "Which?", "4"},
		{"prompt", `{"prompt":[{"role":"user","content":"Which?\nA) one\nB) two"}],"options":["one","two"],"answer":"B"}`,
			"Which?\nA) one\nB) two", "B"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := parsed(t, tt.name, tt.row)
			facts, err := FactsOf(&p)
			if err != nil {
				t.Fatal(err)
			}
			golds := strings.Join(append([]string{p.Answer}, facts.Answers...), "|")
			if facts.Source != "" {
				golds += " of " + facts.Source
			}
			if p.Prompt != tt.text || golds != tt.golds {
				t.Errorf("%q, golds %s", p.Prompt, golds)
			}
			if !strings.Contains(golds, "|") { // no options
				if p.Choice != nil {
					t.Errorf("options %+v", p.Choice)
				}
				return
			}
			c := p.Choice
			o := options{texts: c.Options}
			if c.Question+"\n\n"+o.String() != p.Prompt || rollout.Letter(c.Right) != p.Answer || len(c.Also) != len(facts.Answers)/2 {
				t.Errorf("choice %+v", c)
			}
			bare, err := WithoutGold(&p)
			if err != nil || bare.Choice.Right != -1 || bare.Choice.Also != nil || p.Choice.Right < 0 {
				t.Errorf("without gold %+v, %v", bare.Choice, err)
			}
		})
	}
}

// A problem that package task wrote keeps its options, and one that has a column of their name does not get any.
func TestKeptChoice(t *testing.T) {
	const written = `{"id":"a","prompt":"P?\n\nA) x\nB) y","answer":"B","multiple_choice":{"question":"P?","options":["x","y"],"right":1}}
{"id":"b","prompt":"Q?","answer":"4","multiple_choice":"no"}
`
	problems, _, err := Problems(rows.Read(file(t, written)), nil, nil)
	if err != nil || len(problems) != 2 {
		t.Fatalf("%+v, %v", problems, err)
	}
	c := problems[0].Choice
	if c == nil || c.Question != "P?" || c.Options[1] != "y" || c.Right != 1 || problems[0].Prompt != "P?\n\nA) x\nB) y" {
		t.Errorf("%+v", problems[0])
	}
	if problems[1].Choice != nil {
		t.Errorf("%+v", problems[1])
	}
	for _, foreign := range []string{`{"options":["x"],"right":0}`, `{"options":["x","y"],"right":1,"also":[0]}`,
		`{"options":["x","y"],"right":0,"also":[2]}`} {
		row := `{"id":"a","prompt":"P?","answer":"B","multiple_choice":` + foreign + "}\n"
		if _, _, err := Problems(rows.Read(file(t, row)), nil, nil); err == nil || !strings.Contains(err.Error(), "rename the column") {
			t.Errorf("a column of the same name: %v", err)
		}
	}
	const several = `{"id":"a","prompt":"P?","answer":"A","multiple_choice":{"options":["x","y","z"],"right":0,"also":[2]}}` + "\n"
	if problems, _, err := Problems(rows.Read(file(t, several)), nil, nil); err != nil || !problems[0].Choice.IsRight(2) || problems[0].Choice.IsRight(1) {
		t.Errorf("%+v, %v", problems, err)
	}
}

// Rows of test splits, whose answers nobody published, are left out.
func TestWithheldChoices(t *testing.T) {
	for _, row := range []string{`{"premise":"p.","question":"cause","choice1":"x","choice2":"y","label":-1}`,
		`{"passage":"p","question":"q","idx":1,"label":-1}`, `{"sentence":"a _","option1":"x","option2":"y","answer":""}`} {
		if problems, _, err := Problems(rows.Read(file(t, row)), nil, nil); err != nil || len(problems) > 0 {
			t.Errorf("%s: %+v, %v", row, problems, err)
		}
	}
}

// A file may have questions with and without options, and some without an answer.
func TestChoicesOfSomeRows(t *testing.T) {
	const text = `{"id":"a","question":"P?","options":["x","y"],"answer":"B"}
{"id":"b","question":"Q?","options":null,"answer":"42"}
{"id":"c","question":"R?","options":["x","y"],"answer":null}
{"id":"d","question":"P?","options":["x","z"],"answer":"B"}
`
	problems, copies, err := Problems(rows.Read(file(t, text)), nil, nil)
	if err != nil || copies != (Copies{Rows: 3, Unique: 3, Unanswered: 1}) {
		t.Fatalf("%+v, %v", copies, err)
	}
	var got []string
	for _, p := range problems {
		got = append(got, p.Prompt+" = "+p.Answer)
	}
	want := []string{"P?\n\nA) x\nB) y = B", "Q? = 42", "P?\n\nA) x\nB) z = B"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q", got)
	}
	// the first row may be one without options
	const later = `{"question":"Q?","options":null,"answer":"42"}` + "\n" + `{"question":"P?","options":["x","y"],"answer":"B"}`
	problems, _, err = Problems(rows.Read(file(t, later)), nil, nil)
	if err != nil || len(problems) != 2 || problems[1].Prompt != "P?\n\nA) x\nB) y" {
		t.Errorf("%+v, %v", problems, err)
	}
	// an open problem has its options without an answer
	open, _, err := PromptsAt(rows.Read(file(t, `{"id":"c","question":"R?","options":["x","y"],"answer":null}`)), Columns{})
	if err != nil || len(open) != 1 || open[0].Prompt != "R?\n\nA) x\nB) y" || open[0].Answer != "" {
		t.Errorf("%+v, %v", open, err)
	}
	// the column of the question may have any name
	named, _, err := ProblemsAt(rows.Read(file(t, `{"puzzle":"R?","options":["x","y"],"answer":"A"}`)), Columns{Prompt: "puzzle"})
	if err != nil || len(named) != 1 || named[0].Prompt != "R?\n\nA) x\nB) y" || named[0].Answer != "A" {
		t.Errorf("%+v, %v", named, err)
	}
}

// The order of shuffled options is the question's, wherever its row stands.
func TestShuffledOptions(t *testing.T) {
	var letters []string
	for _, question := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"} {
		row := `{"question":"` + question + `","correct_answer":"w","distractor1":"x","distractor2":"y","distractor3":"z"}`
		problems, _, err := Problems(rows.Read(file(t, row)), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		letters = append(letters, problems[0].Answer)
	}
	if got := strings.Join(letters, ""); got != "CDDACBCBCDBB" {
		t.Errorf("right options %s", got)
	}
}

func TestBadChoices(t *testing.T) {
	for row, want := range map[string]string{
		`{"question":"Q","options":["x","y"],"answer":"C"}`:                               `field "answer": "C" is none of the 2 options in "options"`,
		`{"question":"Q","options":["x","y"],"answer":2}`:                                 `field "answer": "2" is none of the 2 options`,
		`{"question":"Q","options":["x","y"],"answer":-1}`:                                `field "answer": "-1" is none of the 2 options`,
		`{"question":"Q","options":["x"," "],"answer":"A"}`:                               `field "options": option B is empty`,
		`{"question":"Q","options":["x",["y"]],"answer":"A"}`:                             `item 2 is a list, not a text`,
		`{"question":"Q","options":["x","y","z"],"answer":["A","B"]}`:                     `2 right options, but not a 0 or 1 for each`,
		`{"question":"Q","choices":{"text":["x","y"],"label":["A"]},"answerKey":"A"}`:     `2 options, but 1 labels`,
		`{"question":"Q","choices":{"text":["x","y"],"label":["1","2"]},"answerKey":"A"}`: `"A" is none of the 2 options`,
		`{"question":"Q","A":"x","B":"y","D":"z","answer":"A"}`:                           `field "C": no option, but "D" has one`,
		`{"sentence":"a _","option1":"x","option2":"y","answer":"3"}`:                     `"3" is not the number of an option, 1 to 2`,
		`{"sentence":"a _","option1":"x","option2":"y","answer":0}`:                       `"0" is not the number of an option, 1 to 2`,
		`{"premise":"p.","question":"why","choice1":"x","choice2":"y","label":0}`:         `"why" is neither cause nor effect`,
		`{"passage":"p","question":"q","answer":"perhaps"}`:                               `"perhaps" is none of the 2 options`,
		`{"question":"Q","mc1_targets":{"choices":["x","y"],"labels":[0,0]}}`:             `no option is right`,
		`{"question":"Q","options":["` + strings.Repeat(`x","`, 26) + `x"],"answer":"A"}`: `27 options; a question has 2 to 26`,
		`{"question":"Q","choices":[{"text":"x","label":"A"},{"text":"y"}],"answer":"A"}`: `choices[1]: field "label": missing`,
		`{"question":"Q","choices":[{"text":"x","label":"A"},"y"],"answer":"A"}`:          `item 2 is a text, not an object`,
	} {
		_, _, err := Problems(rows.Read(file(t, row)), nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", row, err, want)
		}
	}
}
