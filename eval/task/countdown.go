package task

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"exp/train/rollout"
)

// Countdown is the task of reaching a target from given numbers with + - * /, exactly, if need be through
// fractions (the task of TinyZero, after the television game).
//
//	prompt  3,5,7,12=22:      numbers ascending
//	target  (12-7)*5-3        nothing else
//
// The answer is the last line that is not blank. Distinct solutions are counted in normal form (see form).
type Countdown struct {
	MinNumbers    int    // given numbers per problem, at least
	MaxNumbers    int    // at most; no more than 5
	LargestNumber int    // numbers are drawn from 1 to this, with repetition
	LargestTarget int    // targets are 1 to this, but not a given number
	Operators     string // the allowed ones of + - * /; - needs +, / needs *
	Use           string // "any": each number at most once; "all": exactly once
	MinSolutions  int    // at least this many distinct solutions
}

const (
	useAny = "any"
	useAll = "all"
)

// countdownData is Problem.Data.
type countdownData struct {
	Numbers []int64 `json:"numbers"` // ascending
	Target  int64   `json:"target"`
	// Solutions counts the distinct solutions; 0 if there are too many numbers to enumerate.
	Solutions int `json:"solutions"`
}

type countdown struct {
	cfg    Countdown
	reward Reward
	solver func() *solver              // made on the first call: grading needs none
	last   atomic.Pointer[problemData] // last problem graded: its completions come in sequence
}

type problemData struct {
	raw  []byte
	data countdownData
}

func newCountdown(cfg Countdown, reward Reward) (*countdown, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &countdown{cfg: cfg, reward: reward, solver: solverFor(cfg.MaxNumbers, cfg.Operators)}, nil
}

// solvers holds the function that returns a solver, by size and operators: tasks of one process share solvers.
var solvers sync.Map

type solverKey struct {
	size      int
	operators string
}

// solverFor returns the function that makes a solver on its first call.
func solverFor(size int, operators string) func() *solver {
	made, _ := solvers.LoadOrStore(solverKey{size, operators},
		sync.OnceValue(func() *solver { return newSolver(size, operators) }))
	return made.(func() *solver)
}

func (c Countdown) check() error {
	bad := func(key, format string, args ...any) error {
		return &ConfigError{Key: "task.countdown." + key, Problem: fmt.Sprintf(format, args...)}
	}
	has := func(op string) bool { return strings.Contains(c.Operators, op) }
	switch {
	case c.MinNumbers < 2:
		return bad("min_numbers", "%d numbers are too few; at least 2", c.MinNumbers)
	case c.MaxNumbers < c.MinNumbers:
		return bad("max_numbers", "%d is less than min_numbers, %d", c.MaxNumbers, c.MinNumbers)
	case c.MaxNumbers > maxSolverNumbers:
		return bad("max_numbers", "%d numbers have too many solutions to enumerate; at most %d", c.MaxNumbers,
			maxSolverNumbers)
	case c.LargestNumber < 2 || c.LargestNumber > 1000:
		return bad("largest_number", "%d is not between 2 and 1000", c.LargestNumber)
	case c.LargestTarget < 1 || c.LargestTarget > 100_000:
		return bad("largest_target", "%d is not between 1 and 100000", c.LargestTarget)
	case c.Use != useAny && c.Use != useAll:
		return bad("use", "%q: must be any or all", c.Use)
	case c.MinSolutions < 1:
		return bad("min_solutions", "%d; every problem has a solution", c.MinSolutions)
	case c.Operators == "" || strings.Trim(c.Operators, "+-*/") != "":
		return bad("operators", "%q may contain only + - * /", c.Operators)
	case has("-") && !has("+"):
		return bad("operators", "%q has - without +, which a-(b-c) = a+c-b needs", c.Operators)
	case has("/") && !has("*"):
		return bad("operators", "%q has / without *, which a/(b/c) = a*c/b needs", c.Operators)
	}
	for i, op := range c.Operators {
		if strings.ContainsRune(c.Operators[:i], op) {
			return bad("operators", "%q has %c twice", c.Operators, op)
		}
	}
	return nil
}

// Alphabet is digits, operators and punctuation.
func (t *countdown) Alphabet() string { return "0123456789,=:()" + t.cfg.Operators }

// Generate draws numbers, then one of the targets they reach.
func (t *countdown) Generate(split Split, n int, seed uint64) ([]rollout.Problem, error) {
	if err := split.check(n); err != nil {
		return nil, err
	}
	g := countdownGenerator{countdown: t, rng: rand.New(rand.NewPCG(seed, 0))}
	scarce := ScarceError{Kind: "countdown", Split: split, Want: n,
		Hint: "raise task.countdown.largest_number or max_numbers, lower min_solutions, or ask for fewer"}
	return drawn(scarce, func(seen map[string]bool) (rollout.Problem, bool) { return g.draw(split, seen) })
}

// countdownGenerator draws problems from one random stream.
type countdownGenerator struct {
	*countdown
	rng     *rand.Rand
	values  []fraction // scratch
	targets []int64    // scratch
}

// draw makes one problem; it fails if the problem belongs to another split, was seen before or has too few
// solutions.
func (g *countdownGenerator) draw(split Split, seen map[string]bool) (p rollout.Problem, ok bool) {
	numbers := make([]int64, g.cfg.MinNumbers+g.rng.IntN(g.cfg.MaxNumbers-g.cfg.MinNumbers+1))
	for i := range numbers {
		numbers[i] = 1 + g.rng.Int64N(int64(g.cfg.LargestNumber))
	}
	slices.Sort(numbers)

	from := g.evaluate(numbers)
	g.reachable(from, numbers)
	if len(g.targets) == 0 {
		return rollout.Problem{}, false
	}
	target := g.targets[g.rng.IntN(len(g.targets))]
	key := countdownKey(numbers, target)
	if splitOf("countdown", key) != split || seen[key] {
		return rollout.Problem{}, false
	}
	solutions := g.solver().solutions(g.values, from, numbers, target)
	if len(solutions) < g.cfg.MinSolutions {
		return rollout.Problem{}, false
	}
	p = countdownProblem(key, countdownData{numbers, target, len(solutions)})
	p.Target = solutions[g.rng.IntN(len(solutions))]
	return p, true
}

// evaluate sets g.values to the values of all expressions over numbers. from is the first one that may be a
// solution.
func (g *countdownGenerator) evaluate(numbers []int64) (from int) {
	values, all := g.solver().values(g.values, numbers)
	g.values = values
	if g.cfg.Use == useAny {
		return 0
	}
	return all
}

// reachable sets g.targets to the possible targets that enough of g.values[from:] reach. Equal numbers can
// turn several of those into one solution.
func (g *countdownGenerator) reachable(from int, numbers []int64) {
	g.targets = g.targets[:0]
	for _, v := range g.values[from:] {
		n, ok := v.integer()
		if ok && 1 <= n && n <= int64(g.cfg.LargestTarget) && !slices.Contains(numbers, n) {
			g.targets = append(g.targets, n)
		}
	}
	slices.Sort(g.targets)
	kept := g.targets[:0]
	for start := 0; start < len(g.targets); {
		n, end := g.targets[start], start+1
		for end < len(g.targets) && g.targets[end] == n {
			end++
		}
		if end-start >= g.cfg.MinSolutions {
			kept = append(kept, n)
		}
		start = end
	}
	g.targets = kept
}

// countdownKey names a problem, as in 3,5,7,12=22.
func countdownKey(numbers []int64, target int64) string {
	var b strings.Builder
	for i, n := range numbers {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(itoa(n))
	}
	return b.String() + "=" + itoa(target)
}

func countdownProblem(key string, data countdownData) rollout.Problem {
	raw, err := json.Marshal(data)
	if err != nil {
		panic("task: JSON of plain numbers: " + err.Error())
	}
	return rollout.Problem{ID: key, Prompt: key + ":", Data: raw}
}

// parseRow reads {"nums": [3, 5], "target": 8, "solution": "3 + 5"}, TinyZero's layout with an optional
// solution, or the same numbers in verl's {"reward_model": {"ground_truth": {"numbers": [3, 5], "target": 8}}}.
// The solution must be right; its normal form becomes the Target.
func (t *countdown) parseRow(line []byte) (rollout.Problem, error) {
	var row struct {
		Nums     []int64 `json:"nums"`
		Target   *int64  `json:"target"`
		Solution string  `json:"solution"`
		Model    struct {
			Truth struct {
				Numbers []int64 `json:"numbers"`
				Target  *int64  `json:"target"`
			} `json:"ground_truth"`
		} `json:"reward_model"`
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return rollout.Problem{}, err
	}
	if truth := row.Model.Truth; row.Nums == nil && row.Target == nil {
		row.Nums, row.Target = truth.Numbers, truth.Target
	}
	if row.Target == nil {
		return rollout.Problem{}, fmt.Errorf(`no "target"`)
	}
	data := countdownData{Numbers: row.Nums, Target: *row.Target}
	slices.Sort(data.Numbers)
	if err := data.check(); err != nil {
		return rollout.Problem{}, err
	}
	if len(data.Numbers) <= t.cfg.MaxNumbers {
		values, from := t.solver().values(nil, data.Numbers)
		if t.cfg.Use == useAny {
			from = 0
		}
		data.Solutions = len(t.solver().solutions(values, from, data.Numbers, data.Target))
	}
	p := countdownProblem(countdownKey(data.Numbers, data.Target), data)
	if row.Solution != "" {
		v := t.judge(data, row.Solution)
		if !v.Correct {
			return rollout.Problem{}, fmt.Errorf("wrong solution %q: %s", row.Solution, v.Reason)
		}
		p.Target = v.Answer
	}
	return p, nil
}

func (t *countdown) check(p *rollout.Problem) error {
	_, err := countdownDataOf(p)
	return err
}

func countdownDataOf(p *rollout.Problem) (countdownData, error) {
	var data countdownData
	if err := json.Unmarshal(p.Data, &data); err != nil {
		return data, fmt.Errorf("data of a countdown problem: %w", err)
	}
	return data, data.check()
}

func (d countdownData) check() error {
	switch {
	case len(d.Numbers) == 0:
		return fmt.Errorf("no numbers")
	case d.Target < 1:
		return fmt.Errorf("target %d is not positive", d.Target)
	case slices.Min(d.Numbers) < 1:
		return fmt.Errorf("number %d is not positive", slices.Min(d.Numbers))
	case !fractionsFit(d.Numbers):
		return fmt.Errorf("the numbers %v are too large for exact arithmetic", d.Numbers)
	}
	return nil
}

// Grade judges the last line of the completion. Answer is the normal form of the expression, or its text if
// it has none because it uses other numbers or divides by zero. Errors mean that p is not a countdown
// problem.
func (t *countdown) Grade(_ context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	last := t.last.Load()
	if last == nil || !bytes.Equal(last.raw, p.Data) {
		data, err := countdownDataOf(p)
		if err != nil {
			return rollout.Verdict{}, fmt.Errorf("problem %s: %w", p.ID, err)
		}
		last = &problemData{bytes.Clone(p.Data), data}
		t.last.Store(last)
	}
	return t.judge(last.data, lastLine(c.Text)), nil
}

func (t *countdown) judge(data countdownData, answer string) rollout.Verdict {
	e, err := parse(answer)
	if err != nil {
		return t.reward.verdict(false, "", err.Error())
	}
	plain := strings.Join(strings.Fields(answer), "")
	if reason := t.illegal(e, data.Numbers); reason != "" {
		return t.reward.verdict(false, plain, reason)
	}
	value := e.evaluate()
	if value.den == 0 {
		return t.reward.verdict(false, plain, "divides by zero")
	}
	if !value.is(data.Target) {
		return t.reward.verdict(false, e.canonical(), fmt.Sprintf("is %s, not %d", value, data.Target))
	}
	return t.reward.verdict(true, e.canonical(), "correct")
}

// illegal names the number or operator that e may not use, or the number that is missing; "" if e is legal.
func (t *countdown) illegal(e *expr, given []int64) string {
	for _, op := range e.operators() {
		if !strings.ContainsRune(t.cfg.Operators, op) {
			return fmt.Sprintf("uses %c", op)
		}
	}
	left := slices.Clone(given)
	for _, n := range e.numbers(nil) {
		i := slices.Index(left, n)
		switch {
		case i >= 0:
			left = slices.Delete(left, i, i+1)
		case slices.Contains(given, n):
			return fmt.Sprintf("uses %d more often than given", n)
		default:
			return fmt.Sprintf("uses %d, which is not given", n)
		}
	}
	if t.cfg.Use == useAll && len(left) > 0 {
		return fmt.Sprintf("does not use %d", left[0])
	}
	return ""
}
