package layout

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"exp/eval/grade/code"
)

func liveCodeBench(r row) (code.Problem, error) {
	p := code.Problem{Family: code.LiveCodeBench, Prelude: true, Limits: limits(liveCodeBenchCPU)}
	var question, starter, private string
	err := r.required([]string{"question_id", "question_content"}, &p.ID, &question)
	if err != nil {
		return p, err
	}
	if starter, err = r.first("starter_code"); err == nil {
		private, err = r.first("private_test_cases")
	}
	if err != nil {
		return p, err
	}
	if p.Cluster, err = r.first("contest_id"); err != nil {
		return p, err
	}
	if p.Date, err = r.first("contest_date"); err != nil {
		return p, err
	}
	p.Date = p.Date[:min(len(p.Date), len("2024-08-31"))]
	var metadata struct {
		FuncName string `json:"func_name"`
	}
	var public, hidden []testCase
	if err := errors.Join(r.into("metadata", &metadata), r.into("public_test_cases", &public)); err != nil {
		return p, err
	}
	if hidden, err = privateTests(private); err != nil {
		return p, fmt.Errorf("private_test_cases: %w", err)
	}
	p.Prompt = contestPrompt(question, starter)
	tests := append(public, hidden...)
	for i := range tests {
		if tests[i].TestType == "functional" && tests[i].Metadata.FuncName == "" {
			tests[i].Metadata.FuncName = metadata.FuncName
		}
	}
	return p, setCases(&p, tests, question)
}

// contestPrompt asks for a program. The wording is ours, the structure is the published one: question,
// format, place for the answer.
func contestPrompt(question, starter string) string {
	format := "Read the input from stdin and write the answer to stdout. Give the whole program in a block of " +
		"Python:\n\n```python\n# your program\n```\n"
	if starter != "" {
		format = "Start from this code, and give the whole program in a block of Python:\n\n```python\n" +
			strings.TrimRight(starter, " \n") + "\n```\n"
	}
	return "Solve this problem in Python.\n\n" + strings.TrimSpace(question) + "\n\n### Format\n\n" + format +
		"\n### Answer\n\n"
}

// longestPickle bounds the unpacked hidden tests of a problem, in bytes; LiveCodeBench's take tens of MB.
const longestPickle = 512 << 20

// privateTests reads the hidden tests: JSON or, on the hub, base64 of zlib of a Python pickle of JSON text.
func privateTests(s string) (list []testCase, err error) {
	if s == "" {
		return nil, nil
	}
	if s[0] == '[' {
		return list, decode([]byte(s), &list)
	}
	packed, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, err
	}
	z, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	pickle, err := io.ReadAll(io.LimitReader(z, longestPickle))
	if err != nil {
		return nil, err
	}
	text, err := unpickleText(pickle)
	if err != nil {
		return nil, err
	}
	err = decode([]byte(text), &list)
	return list, err
}
