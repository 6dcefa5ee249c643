package task

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// Functions is the task of finding a function from examples: the smallest task whose
// answers are programs. What is hidden is a few operations on integers.
//
//	prompt  2,3=8 1,4=9 5,0=5       f(2,3) is 8, and so on; ends with a line end
//	target  return a+2*b            or  x=2*b
//	                                    return x+a
//
// A completion is the body of f(a, b), in Python. It is run in the sandbox, on the
// examples and on inputs that the prompt does not show, and right if all values are; the
// values stay outside. The split is decided by the function alone, by what it gives on a
// grid: no function of a test problem was ever trained on, however it is written.
//
// Most functions can be written in several ways; those are told apart by a normal form
// (see programForm).
type Functions struct {
	Arguments     int    // of the function, 1 to 3: a, b, c
	Operations    int    // at most so many in the function, 1 to 4
	LargestNumber int    // constants are 1 to this, inputs 0 to this
	Operators     string // some of + - * / %; / is Python's //
	Examples      int    // shown
	HiddenTests   int    // not shown
}

const (
	argumentNames = "abc"
	temporary     = "x" // the name of the target's intermediate value
	// largestFunctionValue bounds the values of a function, so that a small model can
	// still compute them.
	largestFunctionValue = 999
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
		return nil, bad("arguments", "%d is not from 1 to %d", cfg.Arguments, len(argumentNames))
	case cfg.Operations < 1 || cfg.Operations > 4:
		return nil, bad("operations", "%d is not from 1 to 4", cfg.Operations)
	case cfg.LargestNumber < 2 || cfg.LargestNumber > 99:
		return nil, bad("largest_number", "%d is not from 2 to 99", cfg.LargestNumber)
	case cfg.Operators == "" || strings.Trim(cfg.Operators, "+-*/%") != "":
		return nil, bad("operators", "%q is not some of + - * / %%", cfg.Operators)
	case cfg.Examples < 1 || cfg.HiddenTests < 0 || cfg.Examples > 100 || cfg.HiddenTests > 100:
		return nil, bad("examples", "%d examples and %d hidden tests are not from 1, and from 0, to 100", cfg.Examples, cfg.HiddenTests)
	case cfg.inputs() < 2*(cfg.Examples+cfg.HiddenTests):
		return nil, bad("examples", "%d examples and %d hidden tests are more than half of the %d inputs that there are", cfg.Examples, cfg.HiddenTests, cfg.inputs())
	}
	t := &functions{cfg: cfg, reward: reward}
	if run == nil {
		return t, nil
	}
	var err error
	t.grader, err = code.NewGrader(run, code.Options{})
	return t, err
}

// inputs is how many different inputs there are.
func (c Functions) inputs() int {
	n := 1
	for range c.Arguments {
		n *= c.LargestNumber + 1
	}
	return n
}

// Alphabet is that of the prompts, and of straight-line programs.
func (t *functions) Alphabet() string {
	runes := []rune("0123456789,=-+*/%() \nreturn" + argumentNames + temporary)
	slices.Sort(runes)
	return string(slices.Compact(runes))
}

// functionData is Problem.Data.
type functionData struct {
	Inputs  [][]int `json:"inputs"` // the shown ones first
	Outputs []int   `json:"outputs"`
}

// Generate draws functions, then inputs.
func (t *functions) Generate(split Split, n int, seed uint64) ([]rollout.Problem, error) {
	if err := split.check(n); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	scarce := ScarceError{Kind: "functions", Split: split, Want: n, Hint: "raise task.functions.operations or largest_number, or ask for fewer"}
	return drawn(scarce, func(map[string]bool) (rollout.Problem, bool) { return t.draw(rng, split) })
}

// draw makes one problem, unless the function falls into another split, does not depend
// on each argument, or has no value or too large a one somewhere.
func (t *functions) draw(rng *rand.Rand, split Split) (rollout.Problem, bool) {
	f := t.drawNode(rng, 1+rng.IntN(t.cfg.Operations))
	key, ok := t.behaviour(f)
	if !ok || splitOf("functions", key) != split {
		return rollout.Problem{}, false
	}
	var data functionData
	var prompt strings.Builder
	taken := map[string]bool{}
	for len(data.Inputs) < t.cfg.Examples+t.cfg.HiddenTests {
		in := make([]int, t.cfg.Arguments)
		text := make([]string, len(in))
		for i := range in {
			in[i] = rng.IntN(t.cfg.LargestNumber + 1)
			text[i] = strconv.Itoa(in[i])
		}
		shown := strings.Join(text, ",")
		if taken[shown] {
			continue
		}
		taken[shown] = true
		out, ok := f.value(in)
		if !ok {
			return rollout.Problem{}, false
		}
		if len(data.Inputs) < t.cfg.Examples {
			fmt.Fprintf(&prompt, "%s=%d ", shown, out)
		}
		data.Inputs, data.Outputs = append(data.Inputs, in), append(data.Outputs, out)
	}
	raw, err := json.Marshal(data)
	if err != nil {
		panic("task: " + err.Error()) // integers always have a JSON
	}
	sum := sha256.Sum256(raw)
	return rollout.Problem{
		ID:     programForm("return "+f.text()) + "#" + hex.EncodeToString(sum[:6]),
		Prompt: strings.TrimRight(prompt.String(), " ") + "\n",
		Target: f.body(rng),
		Data:   raw,
	}, true
}

// drawNode draws an expression of so many operations, all shapes alike.
func (t *functions) drawNode(rng *rand.Rand, operations int) *node {
	if operations == 0 {
		if rng.IntN(3) == 0 {
			return &node{leaf: strconv.Itoa(1 + rng.IntN(t.cfg.LargestNumber))}
		}
		at := rng.IntN(t.cfg.Arguments)
		return &node{leaf: argumentNames[at : at+1]}
	}
	left := rng.IntN(operations)
	return &node{op: t.cfg.Operators[rng.IntN(len(t.cfg.Operators))], left: t.drawNode(rng, left), right: t.drawNode(rng, operations-1-left)}
}

// behaviour is what the function gives for all inputs from 0 to 3, which tells two
// functions of few operations apart; ok is false if it has no value there, or does not
// depend on each argument.
func (t *functions) behaviour(f *node) (key string, ok bool) {
	const side = 4
	points := 1
	for range t.cfg.Arguments {
		points *= side
	}
	values := make([]int, points)
	for p := range points {
		in := make([]int, t.cfg.Arguments)
		for i, rest := 0, p; i < len(in); i, rest = i+1, rest/side {
			in[i] = rest % side
		}
		if values[p], ok = f.value(in); !ok {
			return "", false
		}
	}
	for i, stride := 0, 1; i < t.cfg.Arguments; i, stride = i+1, stride*side {
		depends := false
		for p, v := range values {
			depends = depends || v != values[p-p/stride%side*stride] // the same with this argument 0
		}
		if !depends {
			return "", false
		}
	}
	return fmt.Sprint(values), true
}

// body is a program for the function, with the operands of + and * in any order: an
// expression, or one time in three, where it has an operation inside another, two
// statements.
func (n *node) body(rng *rand.Rand) string {
	n = n.shuffled(rng)
	inner := &n.left
	if (*inner).op == 0 || n.right.op != 0 && rng.IntN(2) == 0 {
		inner = &n.right
	}
	if (*inner).op == 0 || rng.IntN(3) > 0 {
		return "return " + n.text()
	}
	first := temporary + "=" + (*inner).text() + "\n"
	*inner = &node{leaf: temporary}
	return first + "return " + n.text()
}

// shuffled is a copy with operands that commute in any order.
func (n *node) shuffled(rng *rand.Rand) *node {
	if n.op == 0 {
		return n
	}
	out := &node{op: n.op, left: n.left.shuffled(rng), right: n.right.shuffled(rng)}
	if (n.op == '+' || n.op == '*') && rng.IntN(2) == 0 {
		out.left, out.right = out.right, out.left
	}
	return out
}

// parseRow is an error: there are no published files of this task.
func (t *functions) parseRow([]byte) (rollout.Problem, error) {
	return rollout.Problem{}, fmt.Errorf(`no "prompt"`)
}

func (t *functions) check(p *rollout.Problem) error {
	_, err := t.tests(p)
	return err
}

// harness calls the function on all inputs: one run of the sandbox for a program. Its
// values are compared outside of it.
const harness = "def outputs(inputs):\n    return [f(*x) for x in inputs]\ndef f(%s):\n"

// limits are far above what a few operations need.
func (t *functions) limits() sandbox.Limits {
	return sandbox.Limits{CPUMS: 500, WallMS: 5000, MemoryMB: 128}
}

// tests is the problem as the grader of programs takes it.
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
	return &code.Problem{ID: p.ID, Entry: "outputs", Starter: fmt.Sprintf(harness, strings.Join(strings.Split(argumentNames[:n], ""), ", ")),
		Tests: []code.Test{{Args: args, Expect: expect}}, Limits: t.limits()}, nil
}

// Grade runs the completion as the body of the function. Answer is its normal form, or
// empty if it is no program.
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
