package task

import (
	"math/bits"
	"math/rand/v2"
	"testing"
)

func canonicalOf(t *testing.T, text string) string {
	t.Helper()
	e, err := parse(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if v := e.evaluate(); v.den == 0 {
		t.Fatalf("%q divides by zero", text)
	}
	return e.canonical()
}

func TestCanonical(t *testing.T) {
	tests := []struct {
		want  string
		texts []string
	}{
		{"5", []string{"5", "(5)", "-(-5)"}},
		{"7+5+3", []string{"3+5+7", "(3+5)+7", "3+(7+5)", "7-(-3-5)"}},
		{"9+2-5", []string{"9-5+2", "9-(5-2)", "2-(5-9)", "-5+2+9", "-(5-(9+2))"}},
		{"8*3/4", []string{"8*3/4", "8/(4/3)", "3/4*8", "3/(4/8)", "(8/4)*3", "(-8)/4*(-3)"}},
		{"12+(7-3)*5", []string{"12+5*(7-3)", "(7-3)*5+12", "12-5*(3-7)", "12-(3-7)*5", "12+(3-7)*-5"}},
		{"(9-2)*(5-1)", []string{"(9-2)*(5-1)", "(2-9)*(1-5)", "(5-1)*(9-2)", "-(2-9)*(5-1)"}},
		{"8/(3-8/3)", []string{"8/(3-8/3)", "-8/(8/3-3)", "8/(3-(8/3))"}},
		// a zero that is its own negative has no sign
		{"5+(3-3)*2", []string{"5+2*(3-3)", "5-2*(3-3)", "5-(3-3)*2"}},
		{"(4-2)*(3-3)", []string{"(3-3)*(4-2)", "(3-3)*(2-4)"}},
		// values do not count, only the shape
		{"6*1", []string{"6*1", "1*6"}},
		{"6/1", []string{"6/1"}},
		{"(4+3)*2", []string{"2*(3+4)"}},
		{"4*2+3*2", []string{"2*3+2*4"}},
		// below zero
		{"-(5-3)", []string{"3-5", "-5+3"}},
		{"-(5-3)*2", []string{"(3-5)*2", "2*(3-5)", "-(2*(5-3))"}},
		{"-3", []string{"-3"}},
	}
	for _, tt := range tests {
		for _, text := range tt.texts {
			if got := canonicalOf(t, text); got != tt.want {
				t.Errorf("%q: got %q, want %q", text, got, tt.want)
			}
		}
	}
}

// The canonical text of a positive expression is an expression of the same value
// and numbers, and its own canonical text.
func TestCanonicalIsAnExpression(t *testing.T) {
	const seed = 4
	r := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		e := randomExpr(r, 1+r.IntN(6))
		v := e.evaluate()
		if v.sign() <= 0 || v.den == 0 {
			continue
		}
		text := e.canonical()
		back, err := parse(text)
		if err != nil {
			t.Fatalf("seed %d: %q: %v", seed, text, err)
		}
		if w := back.evaluate(); w.String() != v.String() {
			t.Fatalf("seed %d: %q is %v, want %v", seed, text, w, v)
		}
		if again := back.canonical(); again != text {
			t.Fatalf("seed %d: %q becomes %q", seed, text, again)
		}
	}
}

// Swapping operands, moving parentheses and signs changes nothing.
func TestCanonicalIsInvariant(t *testing.T) {
	const seed = 8
	r := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		e := randomExpr(r, 2+r.IntN(5))
		if e.evaluate().den == 0 {
			continue
		}
		want := e.canonical()
		other := rewrite(r, e)
		if other.evaluate().den == 0 {
			continue // a/(b/c) with c = 0 divides by zero where a*c/b does not
		}
		if got := other.canonical(); got != want {
			t.Fatalf("seed %d: %q, rewritten %q", seed, want, got)
		}
	}
}

// randomExpr is a tree over n numbers from 1 to 6, so that equal numbers and zeros
// are common.
func randomExpr(r *rand.Rand, n int) *expr {
	if n == 1 {
		return &expr{op: opNumber, number: 1 + r.Int64N(6)}
	}
	k := 1 + r.IntN(n-1)
	return &expr{op: "+-*/"[r.IntN(4)], left: randomExpr(r, k), right: randomExpr(r, n-k)}
}

// rewrite applies one of the laws of normal forms, where it fits, at every node.
func rewrite(r *rand.Rand, e *expr) *expr {
	if e.op == opNumber {
		return e
	}
	a, b := rewrite(r, e.left), rewrite(r, e.right)
	node := func(op byte, a, b *expr) *expr { return &expr{op: op, left: a, right: b} }
	minus := func(a *expr) *expr { return &expr{op: opMinus, left: a} }
	same := node(e.op, a, b)
	law := r.IntN(4)
	switch {
	case law == 0 && (e.op == '+' || e.op == '*'): // commutes
		return node(e.op, b, a)
	case law == 1 && e.op == '-': // a-b = -(b-a)
		return minus(node('-', b, a))
	case law == 1 && (e.op == '*' || e.op == '/'): // a·b = (-a)·(-b)
		return node(e.op, minus(a), minus(b))
	case law == 2 && e.op == '+' && a.op == '-': // (x-y)+b = x-(y-b)
		return node('-', a.left, node('-', a.right, b))
	case law == 2 && e.op == '/' && a.op == '*': // x·y/b = x·(y/b)
		return node('*', a.left, node('/', a.right, b))
	case law == 2 && e.op == '/' && b.op == '/': // a/(x/y) = a·y/x
		return node('/', node('*', a, b.right), b.left)
	case law == 3 && e.op == '-' && b.op == '*': // a-x·y = a+(-x)·y
		return node('+', a, node('*', minus(b.left), b.right))
	}
	return same
}

// Two expressions have the same normal form exactly if they are the same function of their numbers, up to
// exchanging equal numbers. Functions are compared at a random point modulo a prime (Schwartz and Zippel).
func TestCanonicalTellsFunctionsApart(t *testing.T) {
	const seed = 13
	r := rand.New(rand.NewPCG(seed, 0))
	tests := []struct {
		name    string
		numbers []int64
		swap    bool // numbers[0] = numbers[1]
	}{
		{"three", []int64{7, 11, 20}, false},
		{"three, two equal", []int64{7, 7, 3}, true},
		{"three, zero", []int64{3, 4, 7}, false},
		{"four", []int64{17, 110, 311, 1000}, false},
		{"four, two equal", []int64{7, 7, 17, 300}, true},
		{"four, zero", []int64{3, 4, 7, 100}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if testing.Short() && len(tt.numbers) > 3 {
				t.Skip("a second of work")
			}
			point := make([]uint64, len(tt.numbers))
			for i := range point {
				point[i] = r.Uint64N(prime)
			}
			swapped := append([]uint64{point[1], point[0]}, point[2:]...)

			formOf := make(map[[2]uint64]string)
			functionOf := make(map[string][2]uint64)
			for _, e := range everyTree(indices(len(point))) {
				function := [2]uint64{modular(e, point)}
				if tt.swap {
					other := modular(e, swapped)
					function = [2]uint64{min(function[0], other), max(function[0], other)}
				}
				e = substitute(e, tt.numbers)
				if e.evaluate().den == 0 {
					continue
				}
				form := e.canonical()
				if f, ok := formOf[function]; ok && f != form {
					t.Fatalf("seed %d: one function, forms %q and %q", seed, f, form)
				}
				if f, ok := functionOf[form]; ok && f != function {
					t.Fatalf("seed %d: two functions, one form %q", seed, form)
				}
				formOf[function], functionOf[form] = form, function
			}
		})
	}
}

// prime is the Mersenne prime 2^61 - 1.
const prime = 1<<61 - 1

func indices(n int) []int64 {
	list := make([]int64, n)
	for i := range list {
		list[i] = int64(i)
	}
	return list
}

// substitute replaces the numbers of e, which are indices.
func substitute(e *expr, numbers []int64) *expr {
	if e.op == opNumber {
		return &expr{op: opNumber, number: numbers[e.number]}
	}
	return &expr{op: e.op, left: substitute(e.left, numbers), right: substitute(e.right, numbers)}
}

// modular is the value modulo prime of e, whose numbers are indices into point.
func modular(e *expr, point []uint64) uint64 {
	if e.op == opNumber {
		return point[e.number]
	}
	a, b := modular(e.left, point), modular(e.right, point)
	switch e.op {
	case '+':
		return (a + b) % prime
	case '-':
		return (a + prime - b) % prime
	case '*':
		return mulMod(a, b)
	}
	// a/b = a·b^(p-2)
	inverse, power := uint64(1), b
	for n := uint64(prime - 2); n > 0; n >>= 1 {
		if n&1 == 1 {
			inverse = mulMod(inverse, power)
		}
		power = mulMod(power, power)
	}
	return mulMod(a, inverse)
}

func mulMod(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return bits.Rem64(hi, lo, prime)
}
