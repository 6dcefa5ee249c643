package layout

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"exp/eval/grade/code"
)

// contestNumber matches the contest number at the start of a Codeforces problem id.
var contestNumber = regexp.MustCompile(`^\d+`)

// codeElo reads CodeElo, whose only tests are its examples. The prompt omits the tags, which give the
// method away.
func codeElo(r row) (code.Problem, error) {
	p := code.Problem{Family: code.Codeforces, Prelude: true, Limits: limits(contestCPU)}
	if err := r.required([]string{"problem_id"}, &p.ID); err != nil {
		return p, err
	}
	p.Cluster = contestNumber.FindString(p.ID)
	var statement strings.Builder
	for _, part := range []struct{ column, head string }{
		{"title", "# "}, {"description", ""}, {"input", "## Input\n\n"}, {"output", "## Output\n\n"},
		{"interaction", "## Interaction\n\n"}, {"note", "## Note\n\n"},
	} {
		text, err := r.first(part.column)
		if err != nil {
			return p, err
		}
		if text != "" {
			statement.WriteString(part.head + strings.TrimSpace(text) + "\n\n")
		}
	}
	var examples [][]json.RawMessage
	if err := r.into("examples", &examples); err != nil {
		return p, err
	}
	var cases []testCase
	for i, e := range examples {
		if len(e) != 2 {
			return p, fmt.Errorf("example %d has %d parts, not an input and an output", i+1, len(e))
		}
		cases = append(cases, testCase{Input: e[0], Output: e[1]})
		in, _ := joined(e[0])
		out, _ := joined(e[1])
		fmt.Fprintf(&statement, "## Example %d\n\nInput:\n\n%s\n\nOutput:\n\n%s\n\n", i+1, strings.TrimSpace(in),
			strings.TrimSpace(out))
	}
	p.Prompt = contestPrompt(statement.String(), "")
	return p, setCases(&p, cases, statement.String())
}

// suite holds the tests of TACO and APPS.
type suite struct {
	FnName  string            `json:"fn_name"`
	Inputs  []json.RawMessage `json:"inputs"`
	Outputs []json.RawMessage `json:"outputs"`
}

func (s suite) cases() ([]testCase, error) {
	if len(s.Inputs) != len(s.Outputs) {
		return nil, fmt.Errorf("%d inputs but %d outputs", len(s.Inputs), len(s.Outputs))
	}
	var cases []testCase
	for i := range s.Inputs {
		c := testCase{Input: s.Inputs[i], Output: s.Outputs[i], FnName: s.FnName}
		if s.FnName != "" {
			c.Type = "function_call"
		}
		cases = append(cases, c)
	}
	return cases, nil
}

func taco(r row) (code.Problem, error) {
	p := code.Problem{Family: code.TACO, Prelude: true, Limits: limits(contestCPU)}
	question, err := r.first("question")
	starter, err2 := r.first("starter_code")
	id, err3 := r.first("problem_id", "id", "task_id")
	var tests suite
	var solutions []string
	if err := errors.Join(err, err2, err3, r.into("input_output", &tests),
		r.into("solutions", &solutions)); err != nil {
		return p, err
	}
	if p.ID = id; id == "" {
		p.ID = fmt.Sprintf("taco/%d", r.Index+1)
	}
	if len(solutions) > 0 {
		p.Solution = solutions[0]
	}
	p.Prompt = contestPrompt(question, starter)
	cases, err := tests.cases()
	if err != nil {
		return p, fmt.Errorf("input_output: %w", err)
	}
	return p, setCases(&p, cases, question)
}

// inputOutput is a group of tests in either layout of CodeContests: two lists, or a list of pairs.
type inputOutput []testCase

func (g *inputOutput) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' {
		return decode(data, (*[]testCase)(g))
	}
	var lists struct{ Input, Output []json.RawMessage }
	if err := decode(data, &lists); err != nil {
		return err
	}
	cases, err := suite{Inputs: lists.Input, Outputs: lists.Output}.cases()
	*g = cases
	return err
}

// python3 is the language number in CodeContests.
const python3 = 3

func codeContests(r row) (code.Problem, error) {
	p := code.Problem{Family: code.TACO, Prelude: true, Limits: limits(contestCPU)}
	var statement string
	if err := r.required([]string{"name", "description"}, &p.ID, &statement); err != nil {
		return p, err
	}
	var cases []testCase
	for _, column := range []string{"public_tests", "private_tests", "generated_tests"} {
		var group inputOutput
		if err := r.into(column, &group); err != nil {
			return p, err
		}
		cases = append(cases, group...)
	}
	var solutions struct {
		Language []int
		Solution []string
	}
	if _, ok := r.Fields["solutions"].(map[string]any); ok {
		if err := r.into("solutions", &solutions); err != nil {
			return p, err
		}
	}
	for i, language := range solutions.Language {
		if language == python3 && i < len(solutions.Solution) && p.Solution == "" {
			p.Solution = solutions.Solution[i]
		}
	}
	if p.Cluster = contestNumber.FindString(p.ID); p.Cluster == p.ID {
		p.Cluster = ""
	}
	p.Prompt = contestPrompt(statement, "")
	return p, setCases(&p, cases, statement)
}

// deepCoder reads the rows of DeepCoder's sources and rllm's own files.
func deepCoder(r row) (code.Problem, error) {
	var question, starter, id string
	var err, err2, err3 error
	question, err = r.first("problem")
	starter, err2 = r.first("starter_code")
	id, err3 = r.first("id", "problem_id", "task_id", "question_id")
	var solutions []string
	if _, ok := r.Fields["solutions"].([]any); ok {
		err3 = errors.Join(err3, r.into("solutions", &solutions))
	}
	if err := errors.Join(err, err2, err3); err != nil {
		return code.Problem{}, err
	}
	var truth json.RawMessage
	if err := r.into("tests", &truth); err != nil {
		return code.Problem{}, err
	}
	p := code.Problem{ID: id, Prompt: contestPrompt(question, starter)}
	if p.ID == "" {
		p.ID = fmt.Sprintf("deepcoder/%d", r.Index+1)
	}
	if len(solutions) > 0 {
		p.Solution = unfencedSolution(solutions[0])
	}
	return p, groundTruth(&p, "", truth, question)
}

// unfencedSolution takes a solution out of its code block.
func unfencedSolution(s string) string {
	if found := code.Extract(s); strings.Contains(s, "```") && found.Text != "" {
		return found.Text
	}
	return s
}

// verl reads a row of an RL data set and keeps its prompt and tests.
func verl(r row) (code.Problem, error) {
	var p code.Problem
	source, err := r.first("data_source")
	if err != nil {
		return p, err
	}
	var prompt []struct{ Role, Content string }
	var model struct {
		GroundTruth json.RawMessage `json:"ground_truth"`
	}
	var extra struct {
		Index     json.RawMessage
		Reference json.RawMessage
		Split     string
	}
	if err := errors.Join(r.into("prompt", &prompt), r.into("reward_model", &model),
		r.into("extra_info", &extra)); err != nil {
		return p, err
	}
	if len(prompt) == 0 {
		return p, errors.New("prompt has no messages")
	}
	p.Prompt = prompt[len(prompt)-1].Content
	if truth := string(model.GroundTruth); truth == "" || truth == "null" || truth == `""` {
		return p, errors.New("reward_model.ground_truth is missing or empty")
	}
	index := strings.Trim(string(extra.Index), `"`)
	if index == "" || index == "null" {
		index = fmt.Sprint(r.Index + 1)
	}
	p.ID = strings.Join(strings.FieldsFunc(source+"/"+extra.Split+"/"+index, func(c rune) bool { return c == '/' }),
		"/")
	var text string
	if json.Unmarshal(model.GroundTruth, &text) == nil && !json.Valid([]byte(text)) {
		return p, programTruth(&p, source, text)
	}
	if text != "" {
		model.GroundTruth = json.RawMessage(text)
	}
	return p, groundTruth(&p, source, model.GroundTruth, p.Prompt)
}

// checkedEntry matches the call that ends a HumanEval test program.
var checkedEntry = regexp.MustCompile(`(?m)^check\((\w+)\)\s*$`)

// programTruth turns a ground truth that is a Python program into tests.
func programTruth(p *code.Problem, source, test string) error {
	m := checkedEntry.FindStringSubmatch(test)
	if m == nil {
		return fmt.Errorf("the ground truth of %s is neither JSON nor a test program that ends in check(function)",
			source)
	}
	p.Family, p.Entry, p.Limits = code.HumanEval, m[1], limits(plusCPU)
	completes(p, test)
	return nil
}

// groundTruth turns a JSON ground truth into tests; section 3.5 of the specification has its two shapes.
// The source decides the family; without a source the shape does.
func groundTruth(p *code.Problem, source string, truth json.RawMessage, statement string) error {
	var cases []testCase
	p.Prelude = true
	if len(truth) > 0 && truth[0] == '{' {
		var tests suite
		if err := decode(truth, &tests); err != nil {
			return fmt.Errorf("tests: %w", err)
		}
		var err error
		if cases, err = tests.cases(); err != nil {
			return fmt.Errorf("tests: %w", err)
		}
		p.Family = code.TACO
	} else {
		if err := decode(truth, &cases); err != nil {
			return fmt.Errorf("tests: %w", err)
		}
		switch {
		case len(cases) > 0 && cases[0].TestType != "":
			p.Family = code.LiveCodeBench
		case len(cases) > 0 && cases[0].Type != "":
			p.Family = code.TACO // PrimeIntellect's
		default:
			p.Family = code.Codeforces
		}
	}
	if source != "" {
		family, known := familyOf(source)
		if family == "" {
			return fmt.Errorf("no rules for data_source %q; known: %s", source, strings.Join(known, ", "))
		}
		if family == code.HumanEval {
			return fmt.Errorf("the ground truth of %s is JSON, not a test program", source)
		}
		p.Family = family
	}
	p.Limits = limits(contestCPU)
	if p.Family == code.LiveCodeBench {
		p.Limits = limits(liveCodeBenchCPU)
	}
	return setCases(p, cases, statement)
}

// dataSource is a data_source of RL data sets, and the family whose rules apply to it.
type dataSource struct {
	name   string
	family code.Family
}

func dataSources() []dataSource {
	return []dataSource{
		{"livecodebench", code.LiveCodeBench}, {"codeforces", code.Codeforces}, {"taco", code.TACO},
		{"apps", code.TACO}, {"code_contests", code.TACO}, {"codecontests", code.TACO},
		{"primeintellect", code.TACO}, {"humanevalplus", code.HumanEval},
	}
}

// ProgramSources lists the data sources whose rows are programming problems in the RL data sets that this package
// reads.
func ProgramSources() (names []string) {
	for _, s := range dataSources() {
		names = append(names, s.name)
	}
	return names
}

// familyOf returns the family of a data_source; for an unknown one, also the names of the known ones.
func familyOf(source string) (f code.Family, known []string) {
	for _, s := range dataSources() {
		if s.name == source {
			return s.family, nil
		}
	}
	return "", ProgramSources()
}
