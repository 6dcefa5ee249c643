package layout

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/eval/rows"
	"exp/train/rollout"
)

// hub is an image of some width as JSON has it where Hugging Face's datasets have {bytes, path}.
func hub(t *testing.T, width int) string {
	return `{"bytes":"` + base64.StdEncoding.EncodeToString(pngOf(t, width, 10)) + `","path":null}`
}

// oneProblem reads the problem of a row, which shows images unless column is empty.
func oneProblem(t *testing.T, row, column string) (rollout.Problem, error) {
	t.Helper()
	list, _, err := ProblemsAt(rows.Read(file(t, row+"\n")), Columns{Images: pictured(column)})
	if err != nil {
		return rollout.Problem{}, err
	}
	if len(list) != 1 {
		t.Fatalf("%d problems in %s", len(list), row)
	}
	return list[0], nil
}

// described returns what a problem shows: prompt, golds, source, widths of images, and its question if it has options.
func described(t *testing.T, p rollout.Problem) string {
	t.Helper()
	facts, err := FactsOf(&p)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q = %s", p.ID, p.Prompt, strings.Join(append([]string{p.Answer}, facts.Answers...), "|"))
	if facts.Source != "" {
		fmt.Fprintf(&b, " of %s", facts.Source)
	}
	if facts.Decimals != nil {
		fmt.Fprintf(&b, " with %d decimals", *facts.Decimals)
	}
	for _, pic := range p.Images {
		fmt.Fprintf(&b, " [%d]", pic.Width)
	}
	if c := p.Choice; c != nil {
		fmt.Fprintf(&b, " asks %q %q, %d", c.Question, c.Options, c.Right)
	}
	return b.String()
}

// The rows have the columns of the published files, with other questions. W, X and Y are images of 3, 4 and 5 pixels.
func TestPictureBenchmarks(t *testing.T) {
	images := strings.NewReplacer("=W", hub(t, 3), "=X", hub(t, 4), "=Y", hub(t, 5))
	const mmmuImages = `"image_1":=W,"image_2":=X,"image_3":null,"image_4":null,"image_5":null,"image_6":null,"image_7":null`
	for _, tt := range []struct{ name, row, want string }{
		{"mathvista", `{"pid":"7","question":"Which?","image":"images/7.jpg","decoded_image":=W,"choices":["B","A","C"],"unit":null,
"precision":null,
"answer":"A","question_type":"multi_choice","answer_type":"text","metadata":{"task":"figure question answering","skills":["s"]},"query":"Hint: a letter.\nQuestion: Which?\nChoices:\n(A) B\n(B) A\n(C) C"}`,
			`7 "<image>Hint: a letter.\nQuestion: Which?\nChoices:\n(A) B\n(B) A\n(C) C" = B|(B) A of figure question answering [3] asks
 "<image>Which?" ["B" "A" "C"], 1`},
		{"mathvista", `{"pid":"8","question":"How far?","decoded_image":=W,"choices":null,"unit":"cm","precision":2.0,"answer":"1.45",
"question_type":"free_form",
"answer_type":"float","metadata":{"task":"t"},"query":"Hint: two decimals.\nQuestion: How far? (Unit: cm)"}`,
			`8 "<image>Hint: two decimals.\nQuestion: How far? (Unit: cm)" = 1.45 of t with 2 decimals [3]`},
		{"mathvista", `{"pid":"9","question":"How many?","decoded_image":=W,"choices":[],"unit":"g","precision":null,"answer":"5",
"question_type":"free_form","answer_type":"integer"}`,
			`9 "<image>How many? (Unit: g)" = 5 with 0 decimals [3]`},
		{"mathvision", `{"id":"1","question":"Which bike?\n<image1> or <image2>","options":["A","B","C","D","E"],"image":"images/2.jpg",
"decoded_image":=W,"answer":"C","solution":null,"level":2,"subject":"arithmetic"}`,
			`1 "<image>Which bike?\n<image1> or <image2>" = C|(C) C of arithmetic [3] asks "<image>Which bike?\n<image1> or <image2>" ["A" "B"
 "C" "D" "E"], 2`},
		{"mathvision", `{"id":"2","question":"How many?\n<image1>","options":["5","4"],"decoded_image":=W,"answer":"B","solution":"So.",
"level":1,"subject":"counting"}`,
			`2 "<image>How many?\n<image1>\n\nA) 5\nB) 4" = B|(B) 4 of counting [3] asks "<image>How many?\n<image1>" ["5" "4"], 1`},
		{"mathvision", `{"id":"3","question":"Area?\n<image1>","options":[],"decoded_image":=W,"answer":"$4 \\pi$","solution":null,"level":5,
"subject":"area"}`,
			`3 "<image>Area?\n<image1>" = $4 \pi$ of area [3]`},
		{"mathverse", `{"sample_index":"1","problem_index":"1","problem_version":"Text Dominant","question":"Angle CED is
 ()\nChoices:\nA:40°\nB:60°","image":=W,"answer":"B",
"question_type":"multi-choice","metadata":{},"query_wo":"Answer directly.\nQuestion: Angle CED is ()\nChoices:\nA:40°\nB:60°","query_cot":"x","question_for_eval":"Angle CED is ()\nChoices:\nA:40°\nB:60°"}`,
			`1 "<image>Answer directly.\nQuestion: Angle CED is ()\nChoices:\nA:40°\nB:60°" = B|(B) 60° of Text Dominant [3] asks
 "<image>Angle CED is ()" ["40°" "60°"], 1`},
		{"mathverse", `{"sample_index":"5","problem_index":"1","problem_version":"Vision Only","question":"","image":=W,"answer":"A",
"question_type":"multi-choice","query_wo":"Answer directly.",
"question_for_eval":"Angle CED is ()\nChoices:\nA:40°\nB:60°"}`,
			`5 "<image>Answer directly." = A|(A) 40° of Vision Only [3] asks "<image>" ["40°" "60°"], 0`},
		{"mathverse", `{"sample_index":"6","problem_index":"2","problem_version":"Text Only","question":"L is?","image":"","answer":"14",
"question_type":"free-form","query_wo":"The value.\nQuestion: L is?"}`,
			`6 "The value.\nQuestion: L is?" = 14 of Text Only`},
		{"mathverse", `{"sample_index":"7","problem_index":"2","problem_version":"Text Only","question":"Which two?\nChoices:\nA:x\nB:y\nC:z","image":"",
"answer":"A\nC","question_type":"multi-choice","query_wo":"Which two?\nChoices:\nA:x\nB:y\nC:z"}`,
			`7 "Which two?\nChoices:\nA:x\nB:y\nC:z" = A, C of Text Only`},
		{"mathverse", `{"sample_index":"8","problem_index":"2","problem_version":"Text Only","question":"True?\nChoice:\nA. False\nB. True","image":"",
"answer":"False","question_type":"multi-choice","query_wo":"True?"}`,
			`8 "True?" = A|(A) False of Text Only asks "True?" ["False" "True"], 0`},
		{"mathvision", `{"id":"468","question":"Which square?\n<image1>","options":["A)","B)","C)"],"decoded_image":=W,"answer":"B","level":2,"subject":"counting"}`,
			`468 "<image>Which square?\n<image1>" = B|(B) B of counting [3] asks "<image>Which square?\n<image1>" ["A" "B" "C"], 1`},
		{"mmmu", `{"id":"validation_Computer_Science_9","question":"See <image 2>, not <image 1>. Which?","options":"['$\\\\frac{1}{2}$',
 \"it's <image 1>\"]",` + mmmuImages + `,"answer":"B","question_type":"multiple-choice","subfield":"s"}`,
			`validation_Computer_Science_9 "See <image>, not <image>. Which?\n\nA) $\\frac{1}{2}$\nB) it's <image>" = B|(B) it's <image 1> of
 Computer_Science [4] [3] [3] asks "See <image>, not <image>. Which?" ["$\\frac{1}{2}$" "it's <image>"], 1`},
		{"mmmu", `{"id":"validation_Math_15","question":"<image 1> Mean?","options":"[]",` + mmmuImages + `,"answer":"['24/7', '3.429']",
"question_type":"open"}`,
			`validation_Math_15 "<image> Mean?" = 24/7|3.429 of Math [3]`},
		{"mmmu", `{"id":"dev_Art_1","question":"Mean?","options":"['1', '2']",` + mmmuImages + `,"answer":"A",
"question_type":"multiple-choice"}`,
			`dev_Art_1 "<image><image>Mean?\n\nA) 1\nB) 2" = A|(A) 1 of Art [3] [4] asks "<image><image>Mean?" ["1" "2"], 0`},
		{"mmmu-pro", `{"id":"test_History_1","question":"In <image 1>?","options":"['a', 'b', 'c']",` + mmmuImages + `,"answer":"C",
"topic_difficulty":"Easy","subject":"History"}`,
			`test_History_1 "In <image>?\n\nA) a\nB) b\nC) c" = C|(C) c of History [3] asks "In <image>?" ["a" "b" "c"], 2`},
		{"mmmu-pro", `{"id":"validation_Accounting_29","question":"<image 1>?","options":"[['A', 'B', 'neither']]",` +
			mmmuImages + `,"answer":"B","subject":"Accounting"}`,
			`validation_Accounting_29 "<image>?\n\nA) A\nB) B\nC) neither" = B|(B) B of Accounting [3] asks "<image>?" ["A" "B" "neither"], 1`},
		{"mmmu-pro-vision", `{"id":"test_History_1","image":=Y,"options":"['a', 'b', 'c']","answer":"C","subject":"History"}`,
			`test_History_1 "<image>" = C|(C) c of History [5] asks "<image>" ["a" "b" "c"], 2`},
		{"ai2d", `{"question":"How many?","options":["1","2","0"],"answer":"1","image":=W}`,
			`0 "<image>How many?\n\nA) 1\nB) 2\nC) 0" = B|(B) 2 [3] asks "<image>How many?" ["1" "2" "0"], 1`},
		{"scienceqa", `{"image":=W,"question":"Which?","choices":["x","y"],"answer":1,"hint":"Look.","task":"closed choice","subject":"natural
 science","lecture":"","solution":"Because."}`,
			`0 "<image>Context: Look.\nWhich?\n\nA) x\nB) y" = B|(B) y of natural science [3] asks "<image>Context: Look.\nWhich?" ["x" "y"],
 1`},
		{"scienceqa", `{"image":null,"question":"Which?","choices":["x","y"],"answer":0,"hint":"","subject":"natural science","lecture":"",
"solution":""}`,
			`0 "Which?\n\nA) x\nB) y" = A|(A) x of natural science asks "Which?" ["x" "y"], 0`},
		{"chartqa", `{"type":"human_test","question":"Sum?","answer":"14%","image":=W}`, `0 "<image>Sum?" = 14% of human_test [3]`},
		{"chartqa-labels", `{"image":=W,"query":"Sum?","label":["14"],"human_or_machine":1}`, `0 "<image>Sum?" = 14 of machine [3]`},
		{"wemath", `{"ID":"3steps_1","split":"testmini","knowledge concept":"Area","question":"Which?","option":"A. 3; cm; B. 4 cm; C. No
 correct answer","answer":"B","image_path":=W,"key":"3steps_1","question number":1}`,
			`0 "<image>Which?\n\nA) 3; cm\nB) 4 cm\nC) No correct answer" = B|(B) 4 cm of 3steps_1 [3] asks "<image>Which?" ["3; cm" "4 cm"
 "No correct answer"], 1`},
		{"wemath", `{"ID":"3steps_1","knowledge concept":"Area","question":"Which?","option":"A or B","answer":"B","image_path":=W,
"key":"2steps_1"}`,
			`0 "<image>Which?\nA or B" = B of 2steps_1 [3]`},
		{"docvqa", `{"questionId":"12","question":"Date?","question_types":["form"],"image":=W,"docId":4,"answers":["May 1","1 May"],
"data_split":"val"}`,
			`12 "<image>Date?" = May 1|1 May [3]`},
		{"textvqa", `{"image_id":"a","question_id":34,"question":"brand?","image":=W,"answers":["nokia","nokia","nok"],"set_name":"val"}`,
			`34 "<image>brand?" = nokia|nokia|nok [3]`},
		{"vqav2", `{"question_type":"what","multiple_choice_answer":"net","answers":[{"answer":"nets","answer_confidence":"maybe",
"answer_id":1},{"answer":"net","answer_confidence":"yes","answer_id":2},{"answer":"net","answer_confidence":"yes","answer_id":3}],
"image_id":458752,"answer_type":"other","question_id":45,"question":"Behind him?","image":=W}`,
			`45 "<image>Behind him?" = net|nets|net of other [3]`},
		// an unknown data set with an image in the column of that name
		{"question", `{"question":"Sum?","answer":"14","image":=W,"more":1}`, `0 "<image>Sum?" = 14 [3]`},
		{"mmlu-pro", `{"question":"Sum?","options":["13","14"],"answer":"B","image":=W,"more":1}`,
			`0 "<image>Sum?\n\nA) 13\nB) 14" = B|(B) 14 [3] asks "<image>Sum?" ["13" "14"], 1`},
		// verl's column goes before a benchmark's
		{"question", `{"question":"<image>Sum?","answer":"14","image":=W,"images":[=X]}`, `0 "<image>Sum?" = 14 [4]`},
	} {
		row := images.Replace(strings.ReplaceAll(tt.row, "\n", ""))
		p, err := oneProblem(t, row, imagesColumn)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got, want := described(t, p), strings.ReplaceAll(tt.want, "\n", ""); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, want)
		}
		if l, err := Detect(firstOf(t, row)); err != nil || l.Name != tt.name {
			t.Errorf("%s is read as %s, %v", tt.name, l.Name, err)
		}
		n := strings.Count(p.Prompt, rollout.ImageMark)
		if n != len(p.Images) || n > 0 && (len(p.Messages) != 1 || p.Messages[0].Images() != n) {
			t.Errorf("%s: %d marks, %d images, messages %v", tt.name, n, len(p.Images), p.Messages)
		}
	}
}

// firstOf returns a row as files have it.
func firstOf(t *testing.T, row string) rows.Row {
	t.Helper()
	all, err := rows.All(file(t, row+"\n"))
	if err != nil || len(all) != 1 {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	return all[0]
}

// data.image_key: none leaves the images of benchmarks out, too, and data.prompt_key names another text.
func TestPicturesLeftOut(t *testing.T) {
	row := `{"sample_index":"1","problem_version":"Text Lite","question":"L?","image":` + hub(t, 3) +
		`,"answer":"14","question_type":"free-form","query_wo":"At once: L?","query_cot":"Think: L?"}`
	p, err := oneProblem(t, row, "")
	if err != nil || len(p.Images) != 0 || p.Prompt != "At once: L?" {
		t.Errorf("%+v, %v", p, err)
	}
	list, _, err := ProblemsAt(rows.Read(file(t, row)), Columns{Prompt: "query_cot", Images: pictured(imagesColumn)})
	if err != nil || list[0].Prompt != "<image>Think: L?" {
		t.Errorf("%+v, %v", list, err)
	}
	vision := `{"id":"test_History_1","image":` + hub(t, 3) + `,"options":"['a', 'b']","answer":"A","subject":"History"}`
	if _, err := oneProblem(t, vision, ""); err == nil || !strings.Contains(err.Error(), "empty problem without its picture") {
		t.Errorf("a question in the picture: %v", err)
	}
}

func TestPictureErrors(t *testing.T) {
	w := hub(t, 3)
	mmmu := func(question, options, images string) string {
		return `{"id":"validation_Art_1","question":"` + question + `","options":"` + options + `",` + images +
			`"image_7":null,"answer":"A","question_type":"multiple-choice"}`
	}
	vision := func(more string) string { return `{"id":"1","question":"Q","level":1,"subject":"s",` + more + `}` }
	for row, want := range map[string]string{
		vision(`"options":[],"decoded_image":null,"answer":"1"`):                             `field "decoded_image": the row has no image, and its problem is about one: fill the column`,
		vision(`"options":[],"decoded_image":{"bytes":null,"path":null},"answer":"1"`):       `the row has no image`,
		vision(`"options":[],"decoded_image":{"bytes":"QUJD"},"answer":"1"`):                 `field "decoded_image": the image: its bytes are not an image file`,
		vision(`"options":[],"decoded_image":{"bytes":null,"path":"gone.png"},"answer":"1"`): `gone.png: no such file`,
		mmmu("See <image 2>.", "['a', 'b']", `"image_1":`+w+`,`):                             `the text shows <image 2>, and the row has no such image in its columns image_1, image_2`,
		mmmu("See <image 8>.", "['a', 'b']", `"image_1":`+w+`,`):                             `the text shows <image 8>`,
		mmmu("See.", "['a', '<image 1>']", `"image_1":null,`):                                `the text shows <image 1>`,
		mmmu("See <image 1>.", "a, b", `"image_1":`+w+`,`):                                   `field "options": "a, b" is not a list of options, as Python or JSON spells it`,
		vision(`"options":["x","y"],"decoded_image":` + w +
			`,"answer":"C"`): `"C" is none of the 2 options`,
		`{"pid":"1","question":"Q","decoded_image":` + w +
			`,"choices":null,"precision":null,"answer":"1.2","question_type":"f","answer_type":"float"}`: `field "precision": missing`,
		`{"question":"Q","answer":"1","photo":` + w +
			`}`: "field \"photo\": the row has an image there, and no known layout of problems says where its text " +
			"shows it: name the column (data.image_key: photo) and write <image> at the place",
		`{"question":"Q","answer":"1","image_1":` + w + `,"image_2":null}`: `field "image_1": the row has an image there`,
		`{"question":"Q","answer":"1","shots":[` + w + `]}`:                `field "shots": the row has an image there`,
	} {
		_, err := oneProblem(t, row, imagesColumn)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ":1: ") {
			t.Errorf("%s:\n%v\nwant %s in line 1", row, err, want)
		}
	}
}

// A missing image is null in parquet files, and rows of a benchmark count each, as published scores count them.
func TestPicturesInParquet(t *testing.T) {
	type image struct {
		Bytes []byte  `parquet:"bytes,optional"`
		Path  *string `parquet:"path,optional"`
	}
	type row struct {
		ID       string `parquet:"id"`
		Question string `parquet:"question"`
		Options  string `parquet:"options"`
		Image1   *image `parquet:"image_1,optional"`
		Image2   *image `parquet:"image_2,optional"`
		Image7   *image `parquet:"image_7,optional"`
		Answer   string `parquet:"answer"`
		Kind     string `parquet:"question_type"`
	}
	a := &image{Bytes: pngOf(t, 3, 10)}
	path := filepath.Join(t.TempDir(), "validation.parquet")
	list := []row{{"validation_Art_1", "<image 1>?", "['x', 'y']", a, nil, nil, "B", "multiple-choice"},
		{"validation_Art_2", "<image 1>?", "['x', 'y']", a, nil, nil, "B", "multiple-choice"},
		{"validation_Art_3", "<image 2>?", "[]", a, &image{Bytes: pngOf(t, 4, 10)}, nil, "7", "open"},
		{"test_Art_4", "<image 1>?", "['x', 'y']", a, nil, nil, "?", "multiple-choice"}}
	write := func() {
		t.Helper()
		f, err := os.Create(path)
		if err == nil {
			err = errors.Join(rows.WriteParquet(f, list), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write()
	problems, copies, err := Problems(rows.Read(path), nil, pictured(imagesColumn))
	if err != nil || copies != (Copies{Rows: 3, Unique: 3, Unanswered: 1}) {
		t.Fatalf("%+v, %v", copies, err)
	}
	if got := described(t, problems[2]); got != `validation_Art_3 "<image>?" = 7 of Art [4]` {
		t.Error(got)
	}
	list[0].Question = "<image 2>?"
	write()
	if _, _, err := Problems(rows.Read(path), nil, pictured(imagesColumn)); err == nil || !strings.Contains(err.Error(), "the text shows <image 2>") {
		t.Errorf("a null image: %v", err)
	}
}

func TestLiteralEscapes(t *testing.T) {
	for text, want := range map[string]string{
		`['\\pi', '\x41\u00e9', "it's"]`: `[\pi Aé it's]`, `['a\fb\v\a\b']`: "[a\fb\v\a\b]", `('x', None, True,)`: "[x <nil> true]",
		`['\101']`: "", `['\N{DASH}']`: "", `['\q']`: "", `['a' 'b']`: "", `['a`: "",
	} {
		v, err := parseLiteral(text)
		if got := fmt.Sprint(v); err == nil && got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}
