package layout

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"exp/eval/grade/instruct"
	"exp/eval/rows"
	"exp/train/rollout"
)

// instructionsIn reads the rows of a file with this text.
func instructionsIn(t *testing.T, text string) ([]rollout.Problem, Copies, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return InstructionsAt(rows.Read(path), Columns{})
}

func TestInstructionRows(t *testing.T) {
	three := []instruct.Instruction{
		{ID: "punctuation:no_comma"},
		{ID: "length_constraints:number_words", Args: map[string]any{"num_words": 300.0, "relation": "at least"}},
		{ID: "keywords:existence", Args: map[string]any{"keywords": []any{"it's", `a "b" \ é`}}},
	}
	for name, row := range map[string]string{
		"IFEval": `{"key":7,"prompt":"Write.","instruction_id_list":["punctuation:no_comma","length_constraints:number_words",` +
			`"keywords:existence"],"kwargs":[{},{"relation":"at least","num_words":300,"language":null},` +
			`{"keywords":["it's","a \"b\" \\ é"]}]}`,
		"a text with arguments": `{"id":"7","prompt":"Write.","instruction_id_list":["punctuation:no_comma",` +
			`"length_constraints:number_words","keywords:existence"],"kwargs":"[null, {\"relation\":\"at least\",` +
			`\"num_words\":300}, {\"keywords\":[\"it's\",\"a \\\"b\\\" \\\\ é\"]}]"}`,
		"open-instruct": `{"id":"7","messages":[{"role":"user","content":"Write."}],"ground_truth":"[{'instruction_id': ` +
			`['punctuation:no_comma', 'length_constraints:number_words', 'keywords:existence'], 'kwargs': [None, ` +
			`{'relation': 'at least', 'num_words': 300}, {'keywords': (\"it's\", 'a \"b\" \\\\ \\u00e9',)}]}]"}`,
		"verl": `{"extra_info":{"index":7},"prompt":[{"role":"user","content":"Write."}],"reward_model":{"ground_truth":` +
			`[{"instruction_id":["punctuation:no_comma","length_constraints:number_words","keywords:existence"],"kwargs":` +
			`[null,{"relation":"at least","num_words":300},{"keywords":["it's","a \"b\" \\ é"]}]}]}}`,
		"ours": `{"id":"7","prompt":"Write.","data":{"instructions":[{"id":"punctuation:no_comma"},` +
			`{"id":"length_constraints:number_words","args":{"relation":"at least","num_words":300}},` +
			`{"id":"keywords:existence","args":{"keywords":["it's","a \"b\" \\ é"]}}]}}`,
	} {
		problems, copies, err := instructionsIn(t, row+"\n"+row+"\n")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if copies.Rows != 2 || copies.Unique != 1 {
			t.Errorf("%s: %+v", name, copies)
		}
		p := problems[0]
		facts, err := FactsOf(&p)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(three, facts.Instructions); diff != "" || p.ID != "7" || p.Prompt != "Write." {
			t.Errorf("%s: %q %q %s", name, p.ID, p.Prompt, diff)
		}
		var r map[string]any
		if err := json.Unmarshal([]byte(row), &r); err != nil {
			t.Fatal(err)
		}
		if !OfInstructions(rows.Row{Fields: r}) {
			t.Errorf("%s: not of instructions", name)
		}
	}
}

// Rows of IFBench, the second turn of a conversation included, of open-instruct's later training sets and of Tulu 3.
func TestFurtherInstructionRows(t *testing.T) {
	for row, want := range map[string]instruct.Instruction{
		`{"key":"4","prompt":"Write.","instruction_id_list":["count:word_count_range"],"kwargs":[{"N":null,` +
			`"max_words":73.0,"min_words":71.0}]}`: {ID: "count:word_count_range",
			Args: map[string]any{"max_words": 73.0, "min_words": 71.0}},
		`{"key":"4","messages":[{"role":"user","content":"Write."},{"role":"assistant","content":"Yes."},` +
			`{"role":"user","content":"Once more."}],"instruction_id_list":["format:emoji"],"kwargs":[null]}`: {
			ID: "format:emoji"},
		`{"id":"4","messages":[{"role":"user","content":"Write."}],"ground_truth":"[{'instruction_id': ` +
			`['last_word:last_word_sent'], 'kwargs': [{'last_word': ['noon'], 'N': None}]}]"}`: {
			ID: "last_word:last_word_sent", Args: map[string]any{"last_word": []any{"noon"}}},
		`{"id":"4","messages":[{"role":"user","content":"Write."}],"ground_truth":"{\"func_name\": ` +
			`\"validate_word_constraint\", \"N\": 5, \"quantifier\": \"around\", \"word\": null}"}`: {
			ID: "validate_word_constraint", Args: map[string]any{"N": 5.0, "quantifier": "around"}},
		`{"id":"4","prompt":"Write.","ground_truth":{"func_name":"validate_title","N":null}}`: {ID: "validate_title",
			Args: map[string]any{}},
	} {
		problems, _, err := instructionsIn(t, row)
		if err != nil {
			t.Error(err)
			continue
		}
		facts, err := FactsOf(&problems[0])
		if err != nil || len(facts.Instructions) != 1 || problems[0].ID != "4" {
			t.Errorf("%s: %q %+v %v", row, problems[0].ID, facts.Instructions, err)
			continue
		}
		if diff := cmp.Diff(want, facts.Instructions[0], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", row, diff)
		}
		var r map[string]any
		if err := json.Unmarshal([]byte(row), &r); err != nil || !OfInstructions(rows.Row{Fields: r}) {
			t.Errorf("%s: not of instructions, %v", row, err)
		}
	}
}

// Prompts with other instructions are other problems, though their texts are equal.
func TestInstructionsTellProblems(t *testing.T) {
	problems, _, err := instructionsIn(t, `{"key":1,"prompt":"a","instruction_id_list":["punctuation:no_comma"],"kwargs":[{}]}
{"key":2,"prompt":"a","instruction_id_list":["startend:quotation"],"kwargs":[{}]}`)
	if err != nil || len(problems) != 2 {
		t.Errorf("%d problems, %v", len(problems), err)
	}
}

func TestBadInstructionRows(t *testing.T) {
	for row, want := range map[string]string{
		`{"prompt":"a","answer":"b"}`:                                                              "no instructions; looked for the fields instruction_id_list with kwargs",
		`{"prompt":"a","instruction_id_list":[],"kwargs":[]}`:                                      `field "instruction_id_list": no instructions`,
		`{"prompt":"a","instruction_id_list":["x:y"],"kwargs":[{}]}`:                               `unknown instruction "x:y"`,
		`{"prompt":"a","instruction_id_list":["punctuation:no_comma"],"kwargs":[]}`:                "an object of arguments, or null, for each",
		`{"prompt":"a","instruction_id_list":["punctuation:no_comma"],"kwargs":[3]}`:               "the arguments of punctuation:no_comma are not an object",
		`{"prompt":"a","instruction_id_list":["punctuation:no_comma"],"kwargs":"[{"}`:              "neither JSON nor Python's",
		`{"prompt":"a","instruction_id_list":["length_constraints:number_words"],"kwargs":[null]}`: "num_words must be a whole number",
		`{"prompt":"a","ground_truth":"[1, 2]"}`:                                                   "neither a list with one object",
		`{"prompt":"a","ground_truth":"{'func_name': 'x'"}`:                                        "neither JSON nor Python's",
		`{"prompt":"a","ground_truth":"{\"func_name\": \"validate_all\"}"}`:                        `unknown instruction "validate_all"; known: change_case:…`,
		`{"prompt":"a","data":{"instructions":3}}`:                                                 "not a list of {id, args}",
		`{"instruction_id_list":["punctuation:no_comma"],"kwargs":[{}]}`:                           "no column with a prompt",
	} {
		_, _, err := instructionsIn(t, row)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "p.jsonl:1") {
			t.Errorf("%s: %v, want %q", row, err, want)
		}
	}
}

func TestLiterals(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": [1, 2.5, null, true]}`:         `{"a":[1,2.5,null,true]}`,
		`{'a': (1, None,), 'b': True}`:        `{"a":[1,null],"b":true}`,
		`['it\'s', "x'y", 'q"q', 'None']`:     `["it's","x'y","q\"q","None"]`,
		`['\n\t\\ \x41é \u4e2d', ]`:           `["\n\t\\ Aé 中"]`,
		`[False, -1e3, ]`:                     `[false,-1e3]`,
		`["trailing, ]", 'in (text)', (),]`:   `["trailing, ]","in (text)",[]]`,
		`['open`:                              "",
		`['bad \q']`:                          "",
		`['bad \x4']`:                         "",
		`set()`:                               "",
		`{1: 2}`:                              "",
		`__import__('os').system('rm -rf x')`: "",
		`[1] [2]`:                             "",
		``:                                    "",
	} {
		v, err := parseLiteral(text)
		if want == "" {
			if err == nil {
				t.Errorf("%s: %v, want an error", text, v)
			}
			continue
		}
		got, _ := json.Marshal(v)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s %v, want %s", text, got, err, want)
		}
	}
}

func FuzzLiterals(f *testing.F) {
	f.Add(`[{'instruction_id': ['a'], 'kwargs': [None, {'b': "c'd"}]}]`)
	f.Add(`'\`)
	f.Fuzz(func(t *testing.T, text string) {
		if v, err := parseLiteral(text); err == nil {
			if _, err := json.Marshal(v); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}
