package main

import (
	"strings"
	"testing"
)

// Two prompts with one and three instructions, as IFEval has them.
const (
	instructionSuite = `{"key":10,"prompt":"Say it without commas.","instruction_id_list":["punctuation:no_comma"],"kwargs":[{}]}
{"key":11,"prompt":"Write much.","instruction_id_list":["length_constraints:number_words","startend:quotation","detectable_format:title"],"kwargs":[{"num_words":3,"relation":"at least"},{},{}]}
`
	instructionResponses = `{"id":"10","response":"Here, you are:\nno commas"}
{"id":"11","response":"\"<<A title>> and two\""}
`
)

func TestEvalInstructions(t *testing.T) {
	inFolder(t, map[string]string{"ifeval-small.jsonl": instructionSuite, "responses.jsonl": instructionResponses})
	d, _ := evalJSON(t, "--responses", "responses.jsonl", "--suite", "ifeval-small.jsonl")
	if len(d.Graders) != 3 || len(d.Forms) != 0 {
		t.Fatalf("%+v", d)
	}
	for grader, want := range map[string][2]float64{"ifeval": {0.5, 0.75}, "ifeval_loose": {1, 1}} {
		m := metricsOf(t, d, grader)
		if m["pass@1"] != want[0] || m["instructions_followed"] != want[1] {
			t.Errorf("%s: %v, want %v", grader, m, want)
		}
	}
	e := call{}.run("eval", "--responses", "responses.jsonl", "--suite", "ifeval-small.jsonl")
	e.succeeds(t)
	if !strings.Contains(e.stdout, "The graders disagree on 1 of 2.") || strings.Contains(e.stdout, "Forms of answers") {
		t.Error(e.stdout)
	}
	call{}.run("eval", "--responses", "responses.jsonl", "--suite", "ifeval-small.jsonl", "--grader", "exp").
		refuses(t, 2, "ifeval-small has instructions in place of gold answers; ifeval and ifeval_loose check them")
}
