package layout

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/eval/grade/code"
	"exp/eval/rows"
)

// pickled packs a text as LiveCodeBench does: pickle protocol 4, zlib, base64.
func pickled(text string) string {
	var body bytes.Buffer
	body.WriteString("\x80\x04\x95")
	_ = binary.Write(&body, binary.LittleEndian, uint64(len(text)+7))
	body.WriteByte('X')
	_ = binary.Write(&body, binary.LittleEndian, uint32(len(text)))
	body.WriteString(text + "\x94.")
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, _ = z.Write(body.Bytes())
	_ = z.Close()
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}

// written writes a file with a text.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

type dict = map[string]any

// TestRows reads one row of each layout and solves the problem it gives.
func TestRows(t *testing.T) {
	g, err := code.NewGrader(openPool(t), code.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const square = "import sys\nprint(int(sys.stdin.readline()) ** 2)"
	pairs := `[{"input":"3\n","output":"9","testtype":"stdin"}]`
	for _, tt := range []struct {
		name    string
		format  string
		row     dict
		family  code.Family
		entry   string
		tests   int
		program string
		wrong   string // a program that must fail; empty: "x = 1"
	}{
		{"humaneval", "humaneval", dict{"task_id": "HumanEval/0", "prompt": "def double(x):\n    return 2 * x\n\ndef f(x):\n    \"\"\"4x\"\"\"\n", "entry_point": "f", "canonical_solution": "    return double(double(x))\n",
			"test": "def check(candidate):\n    assert candidate(2) == double(4)\n"}, code.HumanEval, "f", 1, "    return double(double(x))\n", "    return 2 * x\n"},
		{"humanevalplus of the hub", "humaneval", dict{"task_id": "HumanEval/1", "prompt": "def f(x):\n    \"\"\"x/3\"\"\"\n", "entry_point": "f", "canonical_solution": "    return x / 3\n",
			"test": "import numpy as np\ndef check(candidate):\n    inputs = [[1], [2.0]]\n    results = [0.3333333333, 0.6666666667]\n    for i, (inp, exp) in enumerate(zip(inputs, results)):\n        assert np.allclose(candidate(*inp), exp, rtol=1e-07, atol=1e-06)\n"},
			code.HumanEval, "f", 1, "def f(x):\n    return x / 3", "def f(x):\n    return x / 3.01"},
		{"mbpp", "mbpp", dict{"task_id": 7, "text": "Square.", "code": "import sys\r\nclass Box:\r\n    def __init__(self, v): self.v = v\r\ndef sq(b): return Box(b.v ** 2)", "test_setup_code": "b = Box(3)",
			"test_list": []string{"assert sq(b).v == 9", "assert sys.getsizeof(1) > 0"}, "challenge_test_list": []string{}}, code.MBPP, "sq", 2,
			"class Box:\n    def __init__(self, v): self.v = v\ndef sq(b): return Box(b.v ** 2)", "class Box:\n    def __init__(self, v): self.v = v\ndef sq(b): return b"},
		{"mbpp sanitized", "mbpp", dict{"task_id": 8, "prompt": "Square.", "code": "def sq(x): return x * x", "test_imports": []string{"import math"}, "test_list": []string{"assert math.sqrt(sq(3)) == 3"}}, code.MBPP, "sq", 1, "def sq(x): return x * x", ""},
		{"mbppplus of the hub", "mbpp", dict{"task_id": 9, "prompt": "Square.", "code": "def sq(x): return x * x", "test_imports": []string{}, "test_list": []string{"assert sq(3) == 9"},
			"test": "import numpy as np\ninputs = [[2], [3]]\nresults = [4, 9]\nfor inp, exp in zip(inputs, results):\n    assert np.allclose(sq(*inp), exp)\n"}, code.MBPP, "sq", 1, "def sq(x): return x * x", "def sq(x): return 9"},
		{"evalplus", "evalplus", dict{"task_id": "HumanEval/2", "prompt": "def f(x: float) -> float:\n    \"\"\"fraction\"\"\"\n", "contract": "", "entry_point": "f", "canonical_solution": "    return x % 1.0\n", "base_input": []any{[]any{3.5}}, "plus_input": []any{[]any{1.25}, []any{123.0}}, "atol": 0},
			code.HumanEval, "f", 2, "    return x - int(x) + 1e-9\n", "    return x - int(x) + 1e-5\n"},
		{"evalplus, a zero", "evalplus", dict{"task_id": "HumanEval/32", "prompt": "import math\ndef find_zero(xs):\n    \"\"\"a zero\"\"\"\n", "entry_point": "find_zero", "canonical_solution": "    return -xs[0] / xs[1]\n", "base_input": []any{[]any{[]any{1, 2}}}, "plus_input": []any{}, "atol": 1e-4},
			code.HumanEval, "find_zero", 1, "    return -xs[0] / xs[1] + 1e-5\n", "    return 1.0"},
		{"evalplus, infinities", "evalplus", dict{"task_id": "HumanEval/3", "prompt": "def f(x):\n    \"\"\"a number\"\"\"\n", "entry_point": "f", "canonical_solution": "    return x * 1e308\n", "base_input": []any{[]any{10}, []any{-10}, []any{1}}, "plus_input": []any{}, "atol": 0},
			code.HumanEval, "f", 1, "def f(x): return x * 1e308 if abs(x) == 10 else 1.00000001e308", "def f(x): return 1e308"},
		{"evalplus, other infinity", "evalplus", dict{"task_id": "HumanEval/3", "prompt": "def f(x):\n    \"\"\"a number\"\"\"\n", "entry_point": "f", "canonical_solution": "    return x * 1e308\n", "base_input": []any{[]any{10}}, "plus_input": []any{}, "atol": 0},
			code.HumanEval, "f", 1, "def f(x): return 1e999", "def f(x): return -1e999"},
		{"evalplus, whole numbers after a float", "evalplus", dict{"task_id": "HumanEval/3", "prompt": "def f(x):\n    \"\"\"a number\"\"\"\n", "entry_point": "f", "canonical_solution": "    return x * 1000000000\n", "base_input": []any{[]any{0.5}, []any{1}}, "plus_input": []any{}, "atol": 0},
			code.HumanEval, "f", 1, "def f(x): return x * 1000000000 + 1", "def f(x): return x * 1000000000 + 200"},
		{"evalplus, whole numbers before a float", "evalplus", dict{"task_id": "HumanEval/3", "prompt": "def f(x):\n    \"\"\"a number\"\"\"\n", "entry_point": "f", "canonical_solution": "    return x * 1000000000\n", "base_input": []any{[]any{1}, []any{0.5}}, "plus_input": []any{}, "atol": 0},
			code.HumanEval, "f", 1, "def f(x): return x * 1000000000", "def f(x): return x * 1000000000 + 1"},
		{"mbpp of evalplus, tuples and sets", "evalplus", dict{"task_id": "Mbpp/2", "prompt": "\"\"\"\nShared elements.\n\"\"\"\n", "entry_point": "similar_elements", "canonical_solution": "def similar_elements(a, b):\n    assert type(a) is tuple\n    return tuple(set(a) & set(b))\n", "base_input": []any{[]any{[]any{3, 4}, []any{4, 5}}}, "plus_input": []any{[]any{[]any{1, 2}, []any{2, 1}}}, "atol": 0},
			code.MBPP, "similar_elements", 2, "def similar_elements(a, b): return [x for x in b if x in a]", "def similar_elements(a, b): return a"},
		{"livecodebench, stdin, packed", "livecodebench", dict{"question_title": "t", "question_content": "Square.", "platform": "p", "question_id": "q1", "contest_id": "abc1", "contest_date": "2024-08-31T00:00:00", "starter_code": "", "difficulty": "easy",
			"public_test_cases": pairs, "private_test_cases": pickled(`[{"input":"4\n","output":"16\n","testtype":"stdin"}]`), "metadata": "{}"}, code.LiveCodeBench, "", 2, square, "print(9)"},
		{"livecodebench, function", "livecodebench", dict{"question_content": "Add.", "question_id": "q2", "contest_date": "2024-09-01", "starter_code": "class Solution:\n    def add(self, a: List[int], b: int) -> int:\n        ", "public_test_cases": `[{"input":"[1, 2]\n3","output":"6","testtype":"functional"}]`,
			"private_test_cases": `[{"input":"[]\n1","output":"1","testtype":"functional"}]`, "metadata": `{"func_name":"add"}`}, code.LiveCodeBench, "add", 2, "class Solution:\n    def add(self, a: List[int], b: int) -> int:\n        return sum(a) + b", "class Solution:\n    def add(self, a, b): return 6"},
		{"codeelo", "codeelo", dict{"problem_id": "1971A", "title": "My First Sorting", "description": "Sort.", "input": "two", "output": "sorted", "interaction": "", "note": "", "examples": [][]string{{"2 1\n", "1 2\n"}}, "tags": []string{"sortings"}, "time_limit_ms": 1000},
			code.Codeforces, "", 1, "print(*sorted(map(int, input().split())))", "print(input())"},
		{"taco, stdin", "taco", dict{"question": "Square. The relative error must not exceed 10^{-6}.", "input_output": `{"inputs":["3\n",["4"]],"outputs":["9.0\n",["16.0"]]}`, "solutions": "[\"print(int(input())**2)\"]", "difficulty": "EASY"}, code.TACO, "", 2, "print(int(input()) ** 2 + 1e-7)", "print(int(input()) ** 2 + 0.1)"},
		{"apps, function", "taco", dict{"problem_id": 12, "question": "Pair.", "starter_code": "def pair(a, b):\n", "input_output": `{"fn_name":"pair","inputs":[[1,"x"],[2,"y"]],"outputs":[[[1,"x"]],[[2,"y"]]]}`}, code.TACO, "pair", 2, "def pair(a, b): return (a, b)", "def pair(a, b): return [b, a]"},
		{"codecontests", "codecontests", dict{"name": "1575_A. Sort", "description": "Square.", "public_tests": dict{"input": []string{"3"}, "output": []string{"9"}}, "private_tests": dict{"input": []string{}, "output": []string{}}, "generated_tests": []any{dict{"input": "5", "output": "25"}},
			"solutions": dict{"language": []int{2, 3}, "solution": []string{"int", square}}}, code.TACO, "", 2, square, "print(9)"},
		{"deepcoder of primeintellect", "deepcoder", dict{"problem": "Square.", "solutions": []string{"```python\n" + square + "\n```"}, "tests": `[{"type":"function_call","fn_name":"sq","input":[3],"output":[9]},{"type":"function_call","input":[4],"output":[16]}]`}, code.TACO, "sq", 2, "def sq(x): return x * x", "def sq(x): return 9"},
		{"deepcoder of livecodebench", "deepcoder", dict{"problem": "Square.", "tests": pairs, "starter_code": ""}, code.LiveCodeBench, "", 1, square, ""},
		{"verl, codeforces", "verl", dict{"data_source": "codeforces", "prompt": []dict{{"role": "user", "content": "Square."}}, "ability": "code", "reward_model": dict{"style": "rule", "ground_truth": `[{"input":"3","output":"9"}]`}, "extra_info": dict{"split": "test", "index": 4}}, code.Codeforces, "", 1, square, ""},
		{"verl, taco", "verl", dict{"data_source": "taco", "prompt": []dict{{"role": "user", "content": "Square."}}, "reward_model": dict{"ground_truth": `{"inputs":["3"],"outputs":["9"]}`}}, code.TACO, "", 1, square, ""},
		{"verl, humanevalplus", "verl", dict{"data_source": "humanevalplus", "prompt": []dict{{"role": "user", "content": "def f(x):\n    \"\"\"square\"\"\"\n"}}, "reward_model": dict{"ground_truth": "def check(candidate):\n    assert candidate(3) == 9\n\ncheck(f)\n"}}, code.HumanEval, "f", 1, "def f(x):\n    return x * x", "def f(x): pass"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, err := json.Marshal(tt.row)
			if err != nil {
				t.Fatal(err)
			}
			list, err := rows.All(written(t, string(text)))
			if err != nil {
				t.Fatal(err)
			}
			p, err := program(list[0])
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := detectProgram(list[0]); got.name != tt.format {
				t.Errorf("detected %q, want %s", got.name, tt.format)
			}
			if p.Family != tt.family || p.Entry != tt.entry || p.Total() != tt.tests || p.Prompt == "" || p.ID == "" {
				t.Errorf("%+v", p)
			}
			if strings.HasPrefix(p.ID, "Mbpp/") {
				t.Errorf("%s is not MBPP's spelling", p.ID)
			}
			if strings.Contains(p.Prompt, "sortings") {
				t.Error("the tags are in the prompt")
			}
			if tt.wrong == "" {
				tt.wrong = "x = 1"
			}
			for source, want := range map[string]bool{tt.program: true, tt.wrong: false} {
				v, err := g.Program(context.Background(), &p, code.Program{Text: source})
				if err != nil || v.Correct != want {
					t.Errorf("correct %v, want %v: %s %s %v\n%s", v.Correct, want, v.Status, v.Reason, err, source)
				}
			}
		})
	}
}

func TestBrokenRows(t *testing.T) {
	const good = `{"question_content":"Square.","question_id":"q1","public_test_cases":"[{\"input\":\"3\",\"output\":\"9\",\"testtype\":\"stdin\"}]"}`
	for _, tt := range []struct{ name, text, want string }{
		{"no JSON", "{", "x.jsonl:1"},
		{"no format", `{"a":1}`, "the columns match no known format"},
		{"twice", good + "\n" + good, "x.jsonl:2: id q1 also belongs to"},
		{"second row broken", good + "\n\n{}", "x.jsonl:3"},
		{"in a list", "[" + good + ",{}]", "x.jsonl: item 2"},
		{"list without an end", "[" + good, "text ends inside a value"},
		{"no tests", `{"question_content":"x","question_id":"q","public_test_cases":"[]"}`, "has no tests"},
		{"function without a name", `{"question_content":"x","question_id":"q","public_test_cases":"[{\"input\":\"1\",\"output\":\"1\",\"testtype\":\"functional\"}]"}`, "an unnamed function"},
		{"arguments that are not JSON", `{"question_content":"x","question_id":"q","metadata":"{\"func_name\":\"f\"}","public_test_cases":"[{\"input\":\"a b\",\"output\":\"1\",\"testtype\":\"functional\"}]"}`, `each line must be a JSON value, and "a b" is not`},
		{"a function, then stdin", `{"question_content":"x","question_id":"q","metadata":"{\"func_name\":\"f\"}","public_test_cases":"[{\"input\":\"1\",\"output\":\"1\",\"testtype\":\"functional\"},{\"input\":\"1\",\"output\":\"1\",\"testtype\":\"stdin\"}]"}`, "test 2 is not of the same kind"},
		{"stdin, then a function", `{"question_content":"x","question_id":"q","metadata":"{\"func_name\":\"f\"}","public_test_cases":"[{\"input\":\"1\",\"output\":\"1\",\"testtype\":\"stdin\"},{\"input\":\"1\",\"output\":\"1\",\"testtype\":\"functional\"}]"}`, "test 2 is not of the same kind"},
		{"two values", `{"question":"x","input_output":"{\"inputs\":[\"1\"],\"outputs\":[\"1\"]}{\"inputs\":[]}"}`, "input_output: more text after the JSON value"},
		{"no ground truth", `{"data_source":"taco","prompt":[{"role":"user","content":"x"}],"reward_model":{"style":"rule"}}`, "ground_truth is missing"},
		{"an empty test program", `{"task_id":"t","prompt":"def f(x):\n","entry_point":"f","canonical_solution":"    return x\n","test":""}`, "does not define the function check"},
		{"an entry that is not a name", `{"task_id":"t","prompt":"def f(x):\n","entry_point":"f g","canonical_solution":"    return x\n","test":"def check(c): pass"}`, `"f g" is not the name of a function`},
		{"no base64", `{"question_content":"x","question_id":"q","public_test_cases":"[]","private_test_cases":"?"}`, "private_test_cases"},
		{"unknown source", `{"data_source":"gsm8k","prompt":[{"role":"user","content":"x"}],"reward_model":{"ground_truth":"[]"}}`, "gsm8k"},
		{"inputs without outputs", `{"question":"x","input_output":"{\"inputs\":[\"1\"],\"outputs\":[]}"}`, "1 inputs but 0 outputs"},
		{"mbpp without its function", `{"task_id":1,"text":"x","code":"def f(): pass","test_list":["assert g() == 1"]}`, "calls no function of the solution"},
	} {
		_, err := programs(written(t, tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	var place *rows.Error
	if _, err := programs(written(t, "{}")); !errors.As(err, &place) || !strings.HasSuffix(place.Where, "x.jsonl:1") {
		t.Errorf("%v does not name line 1", err)
	}
}

// TestPickles: a text of any length is read, and nothing that could run.
func TestPickles(t *testing.T) {
	for _, n := range []int{0, 1, 300, 70_000} {
		want := strings.Repeat("é", n)
		packed, _ := base64.StdEncoding.DecodeString(pickled(want))
		z, err := zlib.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		var plain bytes.Buffer
		if _, err := plain.ReadFrom(z); err != nil {
			t.Fatal(err)
		}
		if got, err := unpickleText(plain.Bytes()); err != nil || got != want {
			t.Errorf("%d: %d bytes, %v", n, len(got), err)
		}
	}
	for name, data := range map[string]string{
		"a call":      "\x80\x04cos\nsystem\nX\x02\x00\x00\x00ls\x85R.",
		"ends early":  "\x80\x04X\xff\xff\xff\xffab",
		"nothing":     "",
		"only an end": "\x80\x04.",
		"a number":    "\x80\x04K\x01.",
	} {
		if got, err := unpickleText([]byte(data)); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestDeclaredTolerance(t *testing.T) {
	for text, want := range map[string]float64{
		"Your answer is correct if its absolute or relative error does not exceed $10^{-6}$.": 1e-6,
		"an absolute error of at most 1e-9":                                                   1e-9,
		"relative or absolute error less than 0.0001 is accepted":                             1e-4,
		"the absolute value of a is at most 10^9. Print an error if it is not.":               0,
		"Print the sum.": 0,
		"Answers within 10-5 of the actual answer will be accepted.":       1e-5,
		"Answers within $10^{-5}$ of the actual answer will be accepted.":  1e-5,
		"The output is accepted with an error of at most 10^{-6}.":         1e-6,
		"The error must not be greater than 1e-7.":                         1e-7,
		"Print the number of values within 10 steps of the start, 2 <= n.": 0,
	} {
		if got := declaredTolerance(text); got != want {
			t.Errorf("%q: %g, want %g", text, got, want)
		}
	}
}

// TestLiveCodeBenchLayout reads the available files in LiveCodeBench's layout; the functions are MBPP's, so
// its solutions solve them.
func TestLiveCodeBenchLayout(t *testing.T) {
	stdin := benchmark(t, "lcb_format_stdin.jsonl")
	functions := benchmark(t, "lcb_format_functional.jsonl")
	if len(stdin) != 60 || len(functions) != 60 {
		t.Errorf("%d and %d problems, want 60 each", len(stdin), len(functions))
	}
	solutions := make(map[string]string)
	for _, p := range benchmark(t, "mbpp.jsonl") {
		solutions["mbpp-"+strings.TrimPrefix(p.ID, "MBPP/")] = p.Solution
	}
	g, err := code.NewGrader(openPool(t), code.Options{})
	if err != nil {
		t.Fatal(err)
	}
	each(functions, func(p *code.Problem) {
		for source, want := range map[string]bool{solutions[p.ID]: true, "def " + p.Entry + "(*args): return 'mutant'": false} {
			v, err := g.Program(context.Background(), p, code.Program{Text: source})
			if err != nil || v.Correct != want {
				t.Errorf("%s: correct %v, want %v: %s %s %v", p.ID, v.Correct, want, v.Status, v.Reason, err)
			}
		}
	})
}

// FuzzPrograms: a file with any content is read or rejected; programs that are read can be graded.
func FuzzPrograms(f *testing.F) {
	f.Add(`{"question_content":"x","question_id":"q","public_test_cases":"[{\"input\":\"1\",\"output\":\"1\",\"testtype\":\"stdin\"}]","private_test_cases":"eJw="}`)
	f.Add(`[{"task_id":1,"text":"x","code":"def f(): pass","test_list":["assert f() == 1"]}]`)
	f.Fuzz(func(t *testing.T, text string) {
		list, err := programs(written(t, text))
		if err != nil {
			return
		}
		for i := range list {
			if err := list[i].Check(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestMissingFile names the file that is missing.
func TestMissingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.jsonl")
	if _, err := programs(path); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
}

// Rows to train on that lack tests are counted and left out; a file of nothing else is an error.
func TestProgramsWithoutTests(t *testing.T) {
	const none = `{"problem_id":1,"question":"a","solutions":"","input_output":"","difficulty":"x","url":"u","starter_code":""}`
	const empty = `{"problem_id":2,"question":"b","solutions":"","input_output":"{\"inputs\":[],\"outputs\":[]}","difficulty":"x","url":"u",` +
		`"starter_code":""}`
	const one = `{"problem_id":3,"question":"c","solutions":"","input_output":"{\"inputs\":[\"1\"],\"outputs\":[\"2\"]}","difficulty":"x",` +
		`"url":"u","starter_code":""}`
	problems, copies, err := ProgramsAt(rows.Read(file(t, none+"\n"+one+"\n"+empty+"\n")), "")
	if err != nil || len(problems) != 1 || copies != (Copies{Rows: 1, Unique: 1, Unanswered: 2}) {
		t.Errorf("%d problems, %+v, %v", len(problems), copies, err)
	}
	if _, _, err := ProgramsAt(rows.Read(file(t, none+"\n"+empty+"\n")), ""); !errors.Is(err, code.ErrNoTests) {
		t.Errorf("no tests at all: %v", err)
	}
	if _, _, err := Programs(rows.Read(file(t, one+"\n"+none+"\n"))); !errors.Is(err, code.ErrNoTests) {
		t.Errorf("a benchmark: %v", err)
	}
}
