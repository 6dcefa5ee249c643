package layout

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"exp/eval/grade/code"
	"exp/sandbox"
)

const (
	assertCPU = 5_000  // HumanEval's own limit is 3 s of wall time for a task, verl's 1 s for an input
	plusCPU   = 20_000 // for hundreds of inputs; EvalPlus allows at most 60 s of wall time
	memoryMB  = 1024   // EvalPlus allows 4 GB, the others set no limit
)

// limits returns limits with this CPU time, and enough wall time for a loaded machine.
func limits(cpuMS int64) sandbox.Limits {
	return sandbox.Limits{CPUMS: cpuMS, WallMS: 3*cpuMS + 5000, MemoryMB: memoryMB}
}

//go:embed numpystandin.py
var numpyStandIn string

//go:embed evalplus.py
var evalPlusChecker string

// withNumPy prepends a stand-in for the little NumPy that tests use, if the interpreter lacks NumPy.
func withNumPy(test string) string {
	if strings.Contains(test, "numpy") {
		return numpyStandIn
	}
	return ""
}

// helpers runs a prompt where the tests run, because tests use its functions (HumanEval 32, 38, 50), and
// keeps the function under test.
func helpers(prompt, entry string) string {
	return "_tested = " + entry + "\n" + prompt + "\n" + entry + " = _tested\n"
}

func humanEval(r row) (code.Problem, error) {
	p := code.Problem{Family: code.HumanEval, Limits: limits(assertCPU)}
	var test, body string
	err := r.required([]string{"task_id", "prompt", "entry_point", "canonical_solution", "test"}, &p.ID, &p.Prompt,
		&p.Entry, &body, &test)
	if err != nil {
		return p, err
	}
	if !usesName(test, "check") {
		return p, errors.New("test does not define the function check")
	}
	completes(&p, test+"\ncheck("+p.Entry+")\n")
	p.Solution = p.Starter + body
	return p, nil
}

// completes sets p up as a problem whose prompt is the head of a function.
func completes(p *code.Problem, test string) {
	p.Starter = p.Prompt
	p.Setup = withNumPy(test) + helpers(p.Prompt, p.Entry)
	p.Asserts = []string{test}
	if strings.Contains(test, "numpy") {
		p.Limits = limits(plusCPU) // hundreds of inputs
	}
}

// These find functions and classes at the top level of a program.
var (
	definedFunction = regexp.MustCompile(`(?m)^def\s+(\w+)\s*\(`)
	definedClass    = regexp.MustCompile(`(?m)^class\s+(\w+)`)
	importedModule  = regexp.MustCompile(`(?m)^import\s+(\w+)\s*$`)
	anyCall         = regexp.MustCompile(`(\w+)\s*\(`)
)

func mbpp(r row) (code.Problem, error) {
	p := code.Problem{Family: code.MBPP, Limits: limits(assertCPU)}
	if err := r.required([]string{"task_id", "code"}, &p.ID, &p.Solution); err != nil {
		return p, err
	}
	text, err := r.first("text", "prompt")
	if err != nil {
		return p, err
	}
	var tests, imports []string
	setup, err := r.first("test_setup_code")
	whole, err2 := r.first("test")
	if err := errors.Join(err, err2, r.into("test_list", &tests), r.into("test_imports", &imports)); err != nil {
		return p, err
	}
	if len(tests) == 0 {
		return p, errors.New("test_list is empty")
	}
	p.ID = "MBPP/" + strings.TrimPrefix(p.ID, "Mbpp/")
	p.Prompt = text + "\n\nYour code should pass these tests:\n\n" + strings.Join(tests, "\n") + "\n"
	p.Solution = strings.ReplaceAll(p.Solution, "\r\n", "\n")
	if p.Entry = firstUsed(definedFunction, p.Solution, tests[0]); p.Entry == "" {
		return p, fmt.Errorf("the first test calls no function of the solution: %s", tests[0])
	}
	p.Asserts = tests
	if whole != "" { // evalplus/mbppplus: one program for all inputs
		p.Asserts, p.Limits = []string{whole}, limits(plusCPU)
	}
	all := setup + "\n" + strings.Join(p.Asserts, "\n")
	for _, m := range definedClass.FindAllStringSubmatch(p.Solution, -1) {
		if usesName(all, m[1]) {
			p.Uses = append(p.Uses, m[1])
		}
	}
	for _, m := range importedModule.FindAllStringSubmatch(p.Solution, -1) {
		if strings.Contains(all, m[1]+".") { // the tests rely on an import of the solution
			imports = append(imports, m[0])
		}
	}
	p.Setup = withNumPy(all) + strings.Join(imports, "\n") + "\n" + strings.ReplaceAll(setup, "\r\n", "\n")
	return p, nil
}

// firstUsed returns the name that a test calls first, among those the pattern finds in the solution.
func firstUsed(defined *regexp.Regexp, solution, test string) string {
	names := make(map[string]bool)
	for _, m := range defined.FindAllStringSubmatch(solution, -1) {
		names[m[1]] = true
	}
	for _, m := range anyCall.FindAllStringSubmatch(test, -1) {
		if names[m[1]] {
			return m[1]
		}
	}
	return ""
}

func usesName(text, name string) bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(text)
}

// evalPlus reads EvalPlus's own files. The reference, run where the tests run, computes the expected
// outputs.
func evalPlus(r row) (code.Problem, error) {
	p := code.Problem{Family: code.HumanEval, Limits: limits(plusCPU)}
	var body string
	if err := r.required([]string{"task_id", "prompt", "entry_point", "canonical_solution"}, &p.ID, &p.Prompt,
		&p.Entry, &body); err != nil {
		return p, err
	}
	tolerance := json.Number("0")
	var base, plus json.RawMessage
	if err := errors.Join(r.into("base_input", &base), r.into("plus_input", &plus),
		r.into("atol", &tolerance)); err != nil {
		return p, err
	}
	p.Solution = p.Prompt + body
	if strings.HasPrefix(p.ID, "Mbpp/") {
		p.Family = code.MBPP // the prompt is a quoted text, and the solution is a whole program
		switch p.Entry {
		case "check_str", "text_match_three", "text_starta_endb":
			p.Uses = []string{p.Entry} // the result may lack a plain value
		}
	} else {
		p.Starter = p.Prompt
	}
	quoted := func(s string) string {
		text, _ := json.Marshal(s) // a JSON literal is also a Python literal
		return string(text)
	}
	p.Setup = fmt.Sprintf("_task, _entry, _atol, _reference = %s, %s, %s, %s\n", quoted(p.ID), quoted(p.Entry),
		tolerance, quoted(p.Solution)) + evalPlusChecker
	for _, inputs := range []json.RawMessage{base, plus} {
		if len(inputs) == 0 || string(inputs) == "[]" {
			continue
		}
		p.Asserts = append(p.Asserts, "_check("+quoted(string(inputs))+")\n")
	}
	if number, ok := strings.CutPrefix(p.ID, "Mbpp/"); ok {
		p.ID = "MBPP/" + number // as in MBPP's own files; the checker goes by EvalPlus's spelling
	}
	return p, nil
}
