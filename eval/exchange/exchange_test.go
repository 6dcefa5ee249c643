package exchange

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"exp/eval/rows"
	"exp/eval/stat"
	"exp/train/rollout"
)

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "responses")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

var responseOptions = cmp.Options{cmpopts.IgnoreFields(Response{}, "Where"), cmpopts.EquateEmpty()}

// Rows as the programs write them, shortened.
func TestRead(t *testing.T) {
	for _, tt := range []struct {
		format, text string
		want         []Response
	}{
		{"lm-eval", `{"doc_id":0,"doc":{"question":"1+1?","answer":"one and one\n#### 2"},"target":"#### 2","arguments":{"gen_args_0":{"arg_0":"Q: 1+1?","arg_1":{"until":["Q:"]}}},"resps":[["It is 2"]],"filtered_resps":["2"],"filter":"strict-match","metrics":["exact_match"],"doc_hash":"x","exact_match":0.0}
{"doc_id":0,"doc":{"question":"1+1?","answer":"one and one\n#### 2"},"target":"#### 2","arguments":{"gen_args_0":{"arg_0":"Q: 1+1?"}},"resps":[["It is 2"]],"filtered_resps":["2"],"filter":"flexible-extract","metrics":["exact_match"],"exact_match":1.0}
`, []Response{{Item: "0", Text: "It is 2", Prompt: "Q: 1+1?", Golds: []string{"2"}, Scores: map[string]float64{"exact_match,strict-match": 0, "exact_match,flexible-extract": 1}}}},
		{"lm-eval", `{"doc_id":3,"doc":{},"target":"7","arguments":[["P",{}]],"resps":[["a","b"]],"metrics":["m"],"m":0.5}`,
			[]Response{{Item: "3", Text: "a", Prompt: "P", Golds: []string{"7"}}, {Item: "3", Sample: 1, Text: "b", Prompt: "P", Golds: []string{"7"}}}},
		// The gold answer stands after the last mark.
		{"lm-eval", `{"doc_id":4,"doc":{},"target":"after #### 5 comes\n#### 7","arguments":[["P",{}]],"resps":[["a"]]}`,
			[]Response{{Item: "4", Text: "a", Prompt: "P", Golds: []string{"7"}}}},
		// The letter is of the options as the document has them, or, where the harness shuffled them, as the target says.
		{"lm-eval", `{"doc_id":5,"doc":{"question":"Q","choices":["x","y"],"answer":1},"target":" B","arguments":[["P",{}]],"resps":[["a"]]}`,
			[]Response{{Item: "5", Text: "a", Prompt: "P", Golds: []string{"B", "(B) y"}}}},
		{"lm-eval", `{"doc_id":6,"doc":{"Question":"Q","Correct Answer":"w","Incorrect Answer 1":"x",` +
			`"Incorrect Answer 2":"y","Incorrect Answer 3":"z",` +
			`"choices":["x","w","z","y"],"answer":"(B)"},"target":"(B)","arguments":[["P",{}]],"resps":[["a"]]}`,
			[]Response{{Item: "6", Text: "a", Prompt: "P", Golds: []string{"(B)"}}}},
		{"lighteval", `{"__doc__":{"query":"P","choices":["7","8"],"gold_index":[0],"id":"4"},"__metric__":{"extractive_match":1},"__model_response__":{"text":["\\boxed{7}"]}}`,
			[]Response{{Item: "4", Text: "\\boxed{7}", Prompt: "P", Golds: []string{"7"}, Scores: map[string]float64{"extractive_match": 1}}}},
		{"verl-parquet", `{"data_source":"aime2024","prompt":[{"role":"user","content":"P"}],"reward_model":{"style":"rule","ground_truth":"7"},"extra_info":{"index":0},"responses":["a","b"]}`,
			[]Response{{Item: "aime2024/0", Text: "a", Prompt: "P", Golds: []string{"7"}, Source: "aime2024"}, {Item: "aime2024/0", Sample: 1, Text: "b", Prompt: "P", Golds: []string{"7"}, Source: "aime2024"}}},
		// Older dumps have neither gold answers nor ids: one input is one problem.
		{"verl-dump", `{"input":"user\nP","output":"Answer: 7","score":1.0,"step":5,"acc":true,"pred":"7"}
{"input":"user\nP","output":"Answer: 8","score":-1.0,"step":5,"acc":false,"pred":"8"}
{"input":"user\nR","output":"","score":-1.0,"step":5,"acc":false,"pred":"[INVALID]"}
`, []Response{{Item: "0", Text: "Answer: 7", Prompt: "user\nP", Scores: map[string]float64{"score": 1, "acc": 1}},
			{Item: "0", Sample: 1, Text: "Answer: 8", Prompt: "user\nP", Scores: map[string]float64{"score": -1, "acc": 0}},
			{Item: "1", Text: "", Prompt: "user\nR", Scores: map[string]float64{"score": -1, "acc": 0}}}},
		// Another gold answer makes the same input another problem. Counts say nothing about right or wrong.
		{"verl-dump", `{"input":"P","output":"a","gts":"1","score":1.0,"step":5,"n_tokens":12}
{"input":"P","output":"b","gts":"2","score":0.0,"step":5,"n_tokens":9}
`, []Response{{Item: "0", Text: "a", Prompt: "P", Golds: []string{"1"}, Scores: map[string]float64{"score": 1}},
			{Item: "1", Text: "b", Prompt: "P", Golds: []string{"2"}, Scores: map[string]float64{"score": 0}}}},
		{"humaneval", `{"task_id":"HumanEval/0","completion":"  return 1","result":"passed","passed":true}`,
			[]Response{{Item: "HumanEval/0", Text: "  return 1", Scores: map[string]float64{"passed": 1}}}},
		{"humaneval", `{"task_id":"HumanEval/0","completion":"x","solution":"def f(): pass"}`, []Response{{Item: "HumanEval/0", Text: "def f(): pass"}}},
		{"evalplus", `{"date":"d","hash":"h","eval":{"HumanEval/0":[{"task_id":"HumanEval/0","solution":"s","base_status":"pass","plus_status":"fail","base_fail_tests":[],"plus_fail_tests":[[1]]}]}}`,
			[]Response{{Item: "HumanEval/0", Text: "s", Scores: map[string]float64{"base": 1, "plus": 0}}}},
		{"evalplus", `{"eval":{"HumanEval/0":[{"solution":"s","base_status":"fail","plus_status":"pass"}]}}`,
			[]Response{{Item: "HumanEval/0", Text: "s", Scores: map[string]float64{"base": 0, "plus": 0}}}},
		{"lcb", `[{"question_title":"t","question_content":"Q","platform":"p","question_id":"abc","output_list":["x","y"],"code_list":["",""],"graded_list":[true,false]}]`,
			[]Response{{Item: "abc", Text: "x", Prompt: "Q", Scores: map[string]float64{"graded": 1}}, {Item: "abc", Sample: 1, Text: "y", Prompt: "Q", Scores: map[string]float64{"graded": 0}}}},
		{"lcb-custom", `[{"question_id":"abc","code_list":["print(1)"]}]`, []Response{{Item: "abc", Text: "print(1)"}}},
		{"exp", `{"id":1,"problem":"P","gold":[7,"seven"],"responses":["a","b"],"source":"aime"}`,
			[]Response{{Item: "1", Text: "a", Prompt: "P", Golds: []string{"7", "seven"}, Source: "aime"}, {Item: "1", Sample: 1, Text: "b", Prompt: "P", Golds: []string{"7", "seven"}, Source: "aime"}}},
		{"exp", `{"id":"x","answer":27.0,"response":"a","finish":"length"}`, []Response{{Item: "x", Text: "a", Golds: []string{"27"}, Finish: rollout.FinishLength}}},
		{"exp-samples", `{"item":"3,4=7","k":2,"prompt":"3,4=7:","completion":"3+4","verdict":"right"}`,
			[]Response{{Item: "3,4=7", Text: "3+4", Prompt: "3,4=7:", Scores: map[string]float64{"verdict": 1}}}},
	} {
		t.Run(tt.format, func(t *testing.T) {
			f, err := Read(file(t, tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if f.Format != tt.format {
				t.Errorf("format %s", f.Format)
			}
			if d := cmp.Diff(tt.want, f.Responses, responseOptions); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// Each format reads what it wrote and writes the same bytes again.
func TestRoundTrip(t *testing.T) {
	math := []Response{
		{Item: "math_dapo/0", Text: "Answer: <7> & π", Prompt: "P?", Golds: []string{"7"}, Source: "math_dapo"},
		{Item: "math_dapo/0", Sample: 1, Text: "", Prompt: "P?", Golds: []string{"7"}, Source: "math_dapo"},
		{Item: "math_dapo/1", Text: "no\nidea", Prompt: "R?", Golds: []string{"x"}, Source: "math_dapo"},
	}
	with := func(list []Response, change func(*Response)) []Response {
		var out []Response
		for _, r := range list {
			change(&r)
			out = append(out, r)
		}
		return out
	}
	scored := func(names ...string) func(*Response) {
		return func(r *Response) {
			r.Scores = map[string]float64{}
			for _, n := range names {
				r.Scores[n] = stat.Indicator(r.Sample == 0)
			}
		}
	}
	bare := with(math, func(r *Response) { r.Prompt, r.Golds, r.Source = "", nil, "" })
	for _, tt := range []struct {
		format string
		in     []Response
	}{
		{"exp", with(math, scored("acc", "score"))},
		{"lm-eval", with(math, func(r *Response) { r.Item, r.Source = strings.TrimPrefix(r.Item, "math_dapo/"), "" })},
		{"lighteval", with(math, func(r *Response) { r.Source = "" })},
		{"lighteval", with(math[2:], func(r *Response) { r.Source = ""; scored("extractive_match")(r) })},
		{"verl-dump", with(math, func(r *Response) { scored("acc", "score")(r); r.Finish = rollout.FinishLength })},
		{"verl-parquet", math},
		{"humaneval", with(bare, scored("passed"))},
		{"evalplus", with(bare, scored("base", "plus"))},
		{"lcb", with(bare, scored("graded"))},
		{"lcb-custom", bare},
	} {
		t.Run(tt.format, func(t *testing.T) {
			var first, second bytes.Buffer
			in := &File{Format: tt.format, Responses: tt.in}
			if err := in.Write(&first, tt.format); err != nil {
				t.Fatal(err)
			}
			got, err := Read(file(t, first.String()))
			if err != nil {
				t.Fatalf("%v\n%s", err, first.String())
			}
			if d := cmp.Diff(tt.in, got.Responses, responseOptions); d != "" || got.Format != tt.format {
				t.Errorf("read as %s (-want +got)\n%s", got.Format, d)
			}
			if err := got.Write(&second, tt.format); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
				t.Errorf("written again: %v\n%s\n%s", err, first.String(), second.String())
			}
		})
	}
}

// A document of the harness has the mean verdict of its responses, and all formats keep the letters of a text.
func TestWriteHarness(t *testing.T) {
	f := &File{Responses: []Response{{Item: "0", Text: "a < b & c", Golds: []string{"<7>"}, Scores: map[string]float64{"acc": 1}},
		{Item: "0", Sample: 1, Text: "b", Golds: []string{"<7>"}, Scores: map[string]float64{"acc": 0}}}}
	var b bytes.Buffer
	if err := f.Write(&b, "lm-eval"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"acc":0.5`, `"resps":[["a < b & c","b"]]`, `"target":"<7>"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in %s", want, b.String())
		}
	}
}

// A verdict that a response lacks is none of the file.
func TestScoreNames(t *testing.T) {
	f := &File{Responses: []Response{{Scores: map[string]float64{"b": 1, "a": 0, "some": 1}}, {Scores: map[string]float64{"a": 1, "b": 1}}}}
	if got := strings.Join(f.ScoreNames(), " "); got != "a b" {
		t.Errorf("%q, want a b", got)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"no text", `{"id":"1","response":null}`, ":1: unknown response format with the fields id, response (null);"},
		{"unknown", `{"a":1}`, ":1: unknown response format with the fields a"},
		{"results of the harness", `{"results":{"gsm8k":{"exact_match,none":0.5}},"config":{}}`, "scores but no responses"},
		{"likelihoods", `{"doc_id":0,"doc":{},"target":"1","resps":[[[-1.5,false]]]}`, `:1: field "resps": not a text: tasks that compare likelihoods`},
		{"no text", `{"id":1,"gold":"2","response":{"a":1}}`, `:1: field "response": an object, not a text`},
		{"second line", `{"id":1,"gold":"2","response":"a"}` + "\n" + `{"id":1,"gold":"2"}`, `:2: field "responses": missing`},
		{"gold_index", `{"doc":{"query":"P","choices":["7"],"gold_index":3},"model_response":{"text":["a"]}}`, `field "doc.gold_index": 3, of 1 choices`},
		{"graded_list", `[{"question_id":"a","output_list":["x"],"graded_list":[true,true]}]`, `item 1: field "graded_list"`},
		{"empty", "", "no responses"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read(file(t, tt.text))
			var e *rows.Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	f, err := Read(file(t, `{"id":"a","gold":"1","response":"x","source":"aime"}`+"\n"+`{"id":"a","gold":"1","response":"y"}`+"\n"+`{"id":"b","gold":["2","3"],"response":"z"}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Problems()
	want := []rollout.Problem{{ID: "a", Answer: "1", Data: []byte(`{"source":"aime"}`)}, {ID: "b", Answer: "2", Data: []byte(`{"answers":["3"]}`)}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
	for text, want := range map[string]string{
		`{"id":"a","response":"x"}`: "no gold answer",
		`{"id":"a","gold":"1","response":"x"}` + "\n" + `{"id":"a","gold":"2","response":"x"}`: `the gold answer "2" here and "1" before`,
	} {
		f, err := Read(file(t, text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Problems(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Responses find their problem by id, or by the longest text in the prompt; a prompt that shows another
// problem beats the id.
func TestMatch(t *testing.T) {
	problems := []rollout.Problem{{ID: "p", Prompt: "What is 1 + 1?"}, {ID: "q", Prompt: "What is 1 + 1? And what is  its\nsquare?"}, {ID: "0", Prompt: "Another problem."}}
	f := &File{Responses: []Response{
		{Item: "p"}, {Item: "x", Prompt: "Solve. What is 1 + 1? Answer:"}, {Item: "y", Prompt: "What is 1 + 1? And what is its square?\nGo"},
		{Item: "0", Prompt: "user What is 1 + 1?"}, {Item: "0", Prompt: "reworded"},
	}}
	if reworded, err := f.Match(problems); err != nil || reworded != 1 {
		t.Fatal(reworded, err)
	}
	var got []string
	for _, r := range f.Responses {
		got = append(got, r.Item+string(rune('0'+r.Sample)))
	}
	if d := cmp.Diff([]string{"p0", "p1", "q0", "p2", "00"}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if _, err := (&File{Responses: []Response{{Item: "z", Prompt: "nothing", Where: "f:1"}}}).Match(problems); err == nil || !strings.Contains(err.Error(), `f:1: the suite has no problem "z"`) {
		t.Error(err)
	}
}

// Programs spell the places of images in their own ways, or not at all.
func TestMatchImages(t *testing.T) {
	problems := []rollout.Problem{{ID: "p", Prompt: "<image>Which is in <image>, the left?\n\nA) <image>\nB) none"}, {ID: "q", Prompt: "<image>"}}
	f := &File{Responses: []Response{{Item: "p", Prompt: "Which is in <image 1>, the left?"},
		{Item: "p", Prompt: "Which is in , the left?"}, {Item: "q", Prompt: "<image 1>"}}}
	if reworded, err := f.Match(problems); err != nil || reworded != 0 {
		t.Errorf("%d reworded, %v", reworded, err)
	}
}

// TestMatchMBPP: EvalPlus's ids are MBPP's in either direction, and so are the numbers in its own files.
func TestMatchMBPP(t *testing.T) {
	for _, tt := range [][2]string{{"MBPP/11", "Mbpp/11"}, {"Mbpp/11", "MBPP/11"}, {"MBPP/11", "11"}, {"11", "11"}} {
		f := &File{Responses: []Response{{Item: tt[1]}}}
		if _, err := f.Match([]rollout.Problem{{ID: tt[0], Prompt: "Remove the first."}}); err != nil || f.Responses[0].Item != tt[0] {
			t.Errorf("%s in a suite with %s: %s, %v", tt[1], tt[0], f.Responses[0].Item, err)
		}
	}
}

func TestResults(t *testing.T) {
	path := file(t, `{"results":{"gsm8k":{"alias":"gsm8k","exact_match,strict-match":0.5,"exact_match_stderr,strict-match":0.01,"sample_len":1319,"x,none":0.25,"x_stderr,none":"N/A"}},"n-samples":{"gsm8k":{"original":1319,"effective":100}}}`)
	got, err := ReadResults(path)
	if err != nil {
		t.Fatal(err)
	}
	se := 0.01
	want := []Result{{"gsm8k", "exact_match,strict-match", 0.5, &se, 100}, {"gsm8k", "x,none", 0.25, nil, 100}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	var b bytes.Buffer
	if err := WriteResults(&b, "m", want); err != nil {
		t.Fatal(err)
	}
	again, err := ReadResults(file(t, b.String()))
	if d := cmp.Diff(want, again); err != nil || d != "" {
		t.Errorf("%v (-want +got)\n%s\n%s", err, d, b.String())
	}
}

func TestLastFence(t *testing.T) {
	for in, want := range map[string]string{"a\n```python\nx\ny\n```\nb": "x\ny", "```\n1\n```\n```py\n2\n```": "2", "```python\nx": "", "": ""} {
		if got := lastFence(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
