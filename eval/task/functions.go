package task

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"exp/eval/grade/code"
	"exp/sandbox"
	"exp/train/rollout"
)

// Functions is the task of finding a function from examples, the smallest task whose answers are programs.
// The hidden function is linear over integers.
//
//	prompt  0,0=5 1,0=7 0,1=4       f(0,0) is 5, and so on; ends with a line end
//	target  return 2*a-b+5          or  x=a-b
//	                                    return x+a+5
//
// The examples determine the function: its values at zero and one step along each argument. A completion is
// the body of f(a, b) in Python. The sandbox runs it on the examples and on inputs that the prompt does not
// show; it is right if all values are. Expected values stay outside the sandbox. The function alone decides
// split and hidden inputs, so no function of a test problem occurs in training, however it is written.
//
// Each function can be written in several ways, distinguished by normal form (see programForm). The target
// is one of them.
type Functions struct {
	Arguments     int // number of arguments, 1 to 3: a, b, c
	LargestNumber int // factors and constants are -this to this, hidden inputs 0 to this
	HiddenTests   int // number of hidden inputs
}

const (
	argumentNames = "abc"
	temporary     = "x" // the name of the target's intermediate value
)

type functions struct {
	cfg    Functions
	reward Reward
	grader *code.Grader // nil without a runner
}

func newFunctions(cfg Functions, run code.Runner, reward Reward) (*functions, error) {
	bad := func(key, format string, args ...any) error {
		return &ConfigError{Key: "task.functions." + key, Problem: fmt.Sprintf(format, args...)}
	}
	switch {
	case cfg.Arguments < 1 || cfg.Arguments > len(argumentNames):
		return nil, bad("arguments", "%d is not between 1 and %d", cfg.Arguments, len(argumentNames))
	case cfg.LargestNumber < 2 || cfg.LargestNumber > 99:
		return nil, bad("largest_number", "%d is not between 2 and 99", cfg.LargestNumber)
	case cfg.HiddenTests < 0 || cfg.HiddenTests > 100:
		return nil, bad("hidden_tests", "%d is not between 0 and 100", cfg.HiddenTests)
	case 2*cfg.HiddenTests > cfg.inputs():
		return nil, bad("hidden_tests", "%d are more than half of all %d inputs; raise "+
			"largest_number or arguments", cfg.HiddenTests, cfg.inputs())
	}
	t := &functions{cfg: cfg, reward: reward}
	if run == nil {
		return t, nil
	}
	var err error
	t.grader, err = code.NewGrader(run, code.Options{})
	return t, err
}

// inputs counts the different inputs with values 0 to LargestNumber.
func (c Functions) inputs() int {
	n := 1
	for range c.Arguments {
		n *= c.LargestNumber + 1
	}
	return n
}

// Alphabet has the characters of prompts and straight-line programs.
func (t *functions) Alphabet() string {
	runes := []rune("0123456789,=-+*() \nreturn" + argumentNames + temporary)
	slices.Sort(runes)
	return string(slices.Compact(runes))
}

// functionData is Problem.Data.
type functionData struct {
	Inputs  [][]int `json:"inputs"` // shown inputs first
	Outputs []int   `json:"outputs"`
}

// Generate draws functions uniformly.
func (t *functions) Generate(split Split, n int, seed uint64) ([]rollout.Problem, error) {
	if err := split.check(n); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	scarce := ScarceError{Kind: "functions", Split: split, Want: n,
		Hint: "raise task.functions.largest_number or arguments, or ask for fewer"}
	return drawn(scarce, func(map[string]bool) (rollout.Problem, bool) {
		f := t.drawLinear(rng)
		id := sum(f.terms())
		return t.problem(id, f, f.program(rng)), splitOf("functions", id) == split
	})
}

// linear is a function: factors[0]*a + factors[1]*b + … + constant.
type linear struct {
	factors  []int
	constant int
}

// drawLinear draws a function that depends on all its arguments.
func (t *functions) drawLinear(rng *rand.Rand) linear {
	number := func() int { return rng.IntN(2*t.cfg.LargestNumber+1) - t.cfg.LargestNumber }
	f := linear{factors: make([]int, t.cfg.Arguments), constant: number()}
	for i := range f.factors {
		for f.factors[i] == 0 {
			f.factors[i] = number()
		}
	}
	return f
}

func (f linear) value(in []int) int {
	v := f.constant
	for i, factor := range f.factors {
		v += factor * in[i]
	}
	return v
}

// problem builds a problem that shows f at zero and one step along each argument.
func (t *functions) problem(id string, f linear, target string) rollout.Problem {
	inputs := [][]int{make([]int, len(f.factors))}
	for i := range f.factors {
		step := make([]int, len(f.factors))
		step[i] = 1
		inputs = append(inputs, step)
	}
	shown := len(inputs)
	rng := rand.New(rand.NewChaCha8(sha256.Sum256([]byte(id))))
	for len(inputs) < shown+t.cfg.HiddenTests {
		in := make([]int, len(f.factors))
		for i := range in {
			in[i] = rng.IntN(t.cfg.LargestNumber + 1)
		}
		if !slices.ContainsFunc(inputs, func(other []int) bool { return slices.Equal(in, other) }) {
			inputs = append(inputs, in)
		}
	}
	data := functionData{Inputs: inputs}
	var prompt []string
	for i, in := range inputs {
		data.Outputs = append(data.Outputs, f.value(in))
		if i < shown {
			prompt = append(prompt, strings.Trim(strings.ReplaceAll(fmt.Sprint(in), " ", ","),
				"[]")+"="+strconv.Itoa(f.value(in)))
		}
	}
	raw, err := json.Marshal(data)
	if err != nil {
		panic("task: " + err.Error()) // integers always encode
	}
	return rollout.Problem{ID: id, Prompt: strings.Join(prompt, " ") + "\n", Target: target, Data: raw}
}

// term is times*of, or the constant times if of is empty.
type term struct {
	times int
	of    string
}

// terms returns the nonzero terms of f.
func (f linear) terms() (terms []term) {
	for i, factor := range f.factors {
		terms = append(terms, term{factor, argumentNames[i : i+1]})
	}
	if f.constant != 0 {
		terms = append(terms, term{f.constant, ""})
	}
	return terms
}

// sum writes the terms as a Python expression.
func sum(terms []term) string {
	var b strings.Builder
	for i, t := range terms {
		times := t.times
		switch {
		case times < 0:
			b.WriteByte('-')
			times = -times
		case i > 0:
			b.WriteByte('+')
		}
		switch {
		case t.of == "":
			b.WriteString(strconv.Itoa(times))
		case times == 1:
			b.WriteString(t.of)
		default:
			b.WriteString(strconv.Itoa(times) + "*" + t.of)
		}
	}
	return b.String()
}

// program writes f in one of many ways. One time in three it first adds or subtracts two arguments: 3*a-2*b
// becomes 2*(a-b)+a. One time in three it splits a term: 3*a becomes 2*a+a. Half of all programs compute
// part of the sum on a separate line.
func (f linear) program(rng *rand.Rand) string {
	terms := f.terms()
	together := "" // two arguments combined, in parentheses
	if n := len(f.factors); n > 1 && rng.IntN(3) == 0 {
		i := rng.IntN(n - 1)
		j := i + 1 + rng.IntN(n-1-i)
		shared, rest := share(terms[i], terms[j])
		terms = slices.Delete(slices.Delete(terms, j, j+1), i, i+1)
		terms = slices.Insert(terms, 0, append([]term{shared}, rest...)...)
		together = shared.of
	}
	if at := rng.IntN(len(terms)); rng.IntN(3) == 0 && abs(terms[at].times) > 1 {
		part := 1 + rng.IntN(abs(terms[at].times)-1)
		if terms[at].times < 0 {
			part = -part
		}
		terms = slices.Insert(terms, at, term{part, terms[at].of})
		terms[at+1].times -= part
	}
	if len(terms) == 1 || rng.IntN(2) == 0 {
		return "return " + sum(terms)
	}
	var line string
	if together == "" {
		n := 1 + rng.IntN(len(terms)-1)
		line = sum(terms[:n])
		terms = slices.Insert(terms[n:], 0, term{1, temporary})
	} else {
		line = strings.Trim(together, "()")
		for i := range terms {
			if terms[i].of == together {
				terms[i].of = temporary
			}
		}
	}
	return temporary + "=" + line + "\nreturn " + sum(terms)
}

// share writes p + q as a multiple of the arguments' sum or difference, plus a rest of the one with the
// larger factor.
func share(p, q term) (shared term, rest []term) {
	n := min(abs(p.times), abs(q.times))
	switch {
	case p.times < 0 && q.times > 0:
		shared = term{n, "(" + q.of + "-" + p.of + ")"}
	case p.times > 0 && q.times < 0:
		shared = term{n, "(" + p.of + "-" + q.of + ")"}
	default:
		shared = term{n * p.times / abs(p.times), "(" + p.of + "+" + q.of + ")"}
	}
	for _, t := range []term{p, q} {
		if left := abs(t.times) - n; left > 0 {
			rest = append(rest, term{left * t.times / abs(t.times), t.of})
		}
	}
	return shared, rest
}

func abs(n int) int { return max(n, -n) }

func (t *functions) check(p *rollout.Problem) error {
	_, err := t.tests(p)
	return err
}

// harness calls the function on all inputs, so a program needs one sandbox run. The values are compared
// outside.
const harness = "def outputs(inputs):\n    return [f(*x) for x in inputs]\ndef f(%s):\n"

// limits are far above what a few operations need.
func (t *functions) limits() sandbox.Limits {
	return sandbox.Limits{CPUMS: 500, WallMS: 5000, MemoryMB: 128}
}

// tests converts the problem for the grader of programs.
func (t *functions) tests(p *rollout.Problem) (*code.Problem, error) {
	var data functionData
	if err := json.Unmarshal(p.Data, &data); err != nil {
		return nil, fmt.Errorf("no examples in the data: %w", err)
	}
	if len(data.Inputs) == 0 || len(data.Inputs) != len(data.Outputs) {
		return nil, fmt.Errorf("%d inputs and %d outputs", len(data.Inputs), len(data.Outputs))
	}
	n := len(data.Inputs[0])
	for _, in := range data.Inputs {
		if len(in) != n || n < 1 || n > len(argumentNames) {
			return nil, fmt.Errorf("inputs of %d and %d numbers", n, len(in))
		}
	}
	args, err := json.Marshal([][][]int{data.Inputs})
	if err != nil {
		return nil, err
	}
	expect, err := json.Marshal(data.Outputs)
	if err != nil {
		return nil, err
	}
	return &code.Problem{ID: p.ID, Entry: "outputs", Starter: fmt.Sprintf(harness,
		strings.Join(strings.Split(argumentNames[:n], ""), ", ")),
		Tests: []code.Test{{Args: args, Expect: expect}}, Limits: t.limits()}, nil
}

// Grade runs the completion as the body of the function. Answer is its normal form, or empty if it is not a
// program.
func (t *functions) Grade(ctx context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	return t.grade(ctx, p, c.Text)
}

// GradeAll implements rollout.BatchGrader.
func (t *functions) GradeAll(ctx context.Context, items []rollout.Item) ([]rollout.Verdict, error) {
	return gradeOnce(ctx, items, t.grade)
}

func (t *functions) grade(ctx context.Context, p *rollout.Problem, text string) (rollout.Verdict, error) {
	if t.grader == nil {
		return rollout.Verdict{}, ErrNoSandbox
	}
	problem, err := t.tests(p)
	if err != nil {
		return rollout.Verdict{}, fmt.Errorf("problem %s: %w", p.ID, err)
	}
	if strings.TrimSpace(text) == "" {
		return t.reward.verdict(false, "", "no program"), nil
	}
	v, err := t.grader.Program(ctx, problem, code.Program{Text: text})
	return t.reward.ofProgram(v, programForm(text), err)
}
