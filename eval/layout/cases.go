package layout

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"exp/eval/grade/code"
)

const (
	liveCodeBenchCPU = 6_000  // per test, as published
	contestCPU       = 12_000 // TACO and Codeforces, as published
)

// testCase is a test in the files of LiveCodeBench, CodeElo, PrimeIntellect and rllm.
type testCase struct {
	Input    json.RawMessage `json:"input"`
	Output   json.RawMessage `json:"output"`
	TestType string          `json:"testtype"` // "stdin", "functional"
	Type     string          `json:"type"`     // "stdin_stdout", "function_call"
	FnName   string          `json:"fn_name"`
	Metadata struct {
		FuncName string `json:"func_name"`
	} `json:"metadata"`
}

// kind reports whether the test calls a function; known is false if it does not say.
func (c testCase) kind() (functional, known bool) {
	functional = c.TestType == "functional" || c.Type == "function_call"
	return functional, functional || c.TestType == "stdin" || c.Type == "stdin_stdout"
}

// setCases turns cases, all of one kind, into tests.
func setCases(p *code.Problem, cases []testCase, statement string) error {
	wrapped := len(cases) > 0
	for i, c := range cases {
		name := c.Metadata.FuncName
		if name == "" {
			name = c.FnName
		}
		if i == 0 {
			p.Entry = name
		}
		switch functional, known := c.kind(); {
		case i > 0 && known && functional != (p.Entry != ""):
			return fmt.Errorf("test %d is not of the same kind as test 1: one calls a function, one reads stdin", i+1)
		case functional && p.Entry == "":
			return fmt.Errorf("test %d calls an unnamed function", i+1)
		}
		var t code.Test
		var err error
		if p.Entry == "" {
			t, err = stdioTest(c.Input, c.Output)
		} else {
			t, err = callTest(c.Input, c.Output, &wrapped)
		}
		if err != nil {
			return fmt.Errorf("test %d: %w", i+1, err)
		}
		p.Tests = append(p.Tests, t)
	}
	p.Wrapped = p.Entry != "" && wrapped && p.Family == code.TACO
	p.Tolerance = declaredTolerance(statement)
	return nil
}

// stdioTest reads texts; a list becomes its items, one per line.
func stdioTest(input, output json.RawMessage) (t code.Test, err error) {
	if t.Stdin, err = joined(input); err != nil {
		return t, fmt.Errorf("input: %w", err)
	}
	if t.Stdout, err = joined(output); err != nil {
		return t, fmt.Errorf("output: %w", err)
	}
	return t, nil
}

func joined(raw json.RawMessage) (string, error) {
	var v any
	if err := decode(raw, &v); err != nil {
		return "", err
	}
	list, ok := v.([]any)
	if !ok {
		return pythonText(v, false), nil
	}
	var lines []string
	for _, x := range list {
		lines = append(lines, pythonText(x, false))
	}
	return strings.Join(lines, "\n"), nil
}

// pythonText returns str(v), or repr(v) inside containers.
func pythonText(v any, inside bool) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	case string:
		if !inside {
			return v
		}
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(v) + "'"
	case []any:
		var list []string
		for _, x := range v {
			list = append(list, pythonText(x, true))
		}
		return "[" + strings.Join(list, ", ") + "]"
	}
	return fmt.Sprint(v)
}

// callTest reads arguments, a list or a text with one JSON value per line, and a value, which may be JSON
// text if the arguments are.
func callTest(input, output json.RawMessage, wrapped *bool) (t code.Test, err error) {
	t.Args, t.Expect = input, output
	if len(input) > 0 && input[0] == '"' {
		var text, want string
		if err := decode(input, &text); err != nil {
			return t, err
		}
		args := []json.RawMessage{}
		for line := range strings.SplitSeq(text, "\n") {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			if !json.Valid([]byte(line)) {
				return t, fmt.Errorf("input: each line must be a JSON value, and %.100q is not", line)
			}
			args = append(args, json.RawMessage(line))
		}
		if t.Args, err = json.Marshal(args); err != nil {
			return t, fmt.Errorf("input: %w", err)
		}
		if len(output) > 0 && output[0] == '"' {
			if err := decode(output, &want); err != nil {
				return t, err
			}
			t.Expect = json.RawMessage(want)
		}
	}
	var list []json.RawMessage
	*wrapped = *wrapped && json.Unmarshal(t.Expect, &list) == nil && len(list) == 1
	return t, nil
}

// smallNumber matches a power of ten below 1, in the ways of statements.
const smallNumber = `(?:10\s*(?:\^|\*\*)?\s*\{?\s*[-−–]\s*\{?\s*(\d{1,2})|1e-(\d{1,2})|(0\.0+1))`

// declared matches statements that allow inexact answers: an absolute or relative error of 10^-6; answers within 10-5
// of the actual answer; an error of at most 1e-6.
var declared = regexp.MustCompile(`(?is)(?:(?:absolute|relative)\s+(?:or\s+(?:absolute|relative)\s+)?` +
	`(?:error|difference)[^.]{0,120}?|\b(?:answers?|values?|results?|outputs?)\s+within\s+|` +
	`\berrors?\s+(?:(?:is|are|of|does|must|should)\s+)*(?:at\s+most|(?:less|smaller|no\s+more)\s+than|within|below|` +
	`up\s+to|not\s+(?:exceed(?:ing)?|be\s+(?:more|greater)\s+than))\s+)` + smallNumber)

// declaredTolerance returns the tolerance that a statement names, else 0.
func declaredTolerance(statement string) float64 {
	m := declared.FindStringSubmatch(strings.ReplaceAll(statement, "$", ""))
	if m == nil {
		return 0
	}
	text := m[3]
	if exponent := m[1] + m[2]; exponent != "" {
		text = "1e-" + exponent
	}
	f, _ := strconv.ParseFloat(text, 64)
	return f
}
