package task

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The numbers of inequivalent expressions with n operands: OEIS A140606.
func TestSolverCountsInequivalentExpressions(t *testing.T) {
	want := []int{1, 6, 68, 1170, 27142}
	size := len(want)
	if testing.Short() {
		size = 4
	}
	s := newSolver(size, "+-*/")
	for n := 1; n <= size; n++ {
		full := 1<<n - 1
		if got := s.ends[full] - s.ends[full-1]; got != want[n-1] {
			t.Errorf("%d operands: %d forms, want %d", n, got, want[n-1])
		}
	}
}

func TestSolverSolutions(t *testing.T) {
	tests := []struct {
		name      string
		numbers   []int64
		target    int64
		operators string
		use       string
		want      []string
	}{
		{"two numbers", []int64{3, 5}, 8, "+-*/", useAny, []string{"5+3"}},
		{"order does not count", []int64{2, 3, 4}, 9, "+", useAll, []string{"4+3+2"}},
		{"equal numbers are one", []int64{3, 3, 5}, 8, "+-", useAny, []string{"5+3"}},
		// 5-(3-3) and (5-3)+3 are 5+3-3; 3*(5/3) and 5/(3/3) are 5*3/3
		{"through zero and one", []int64{3, 3, 5}, 5, "+-*/", useAll, []string{"5*3/3", "5+3-3"}},
		{"a number alone", []int64{3, 3, 5}, 5, "+-", useAny, []string{"5", "5+3-3"}},
		// 8/(3-8/3) = 8/(1/3)
		{"only through a fraction", []int64{3, 3, 8, 8}, 24, "+-*/", useAll, []string{"8/(3-8/3)"}},
		{"none", []int64{1, 1, 1, 1}, 24, "+-*/", useAny, nil},
		{"no way without division", []int64{3, 3, 8, 8}, 24, "+-*", useAll, nil},
		{"two ways", []int64{2, 3, 4}, 14, "+-*", useAll, []string{"(4+3)*2", "4*3+2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSolver(4, tt.operators)
			values, from := s.values(nil, tt.numbers)
			if tt.use == useAny {
				from = 0
			}
			if got := s.solutions(values, from, tt.numbers, tt.target); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// The solver finds what trying every tree finds.
func TestSolverAgreesWithEveryTree(t *testing.T) {
	const seed = 21
	r := rand.New(rand.NewPCG(seed, 0))
	s := newSolver(4, "+-*/")
	for round := range 12 {
		numbers := make([]int64, 2+round%3)
		for i := range numbers {
			numbers[i] = 1 + r.Int64N(9)
		}
		slices.Sort(numbers)
		byTarget := make(map[int64]map[string]bool)
		for _, e := range everyTree(numbers) {
			if n, ok := e.evaluate().integer(); ok && n > 0 {
				if byTarget[n] == nil {
					byTarget[n] = make(map[string]bool)
				}
				byTarget[n][e.canonical()] = true
			}
		}
		values, all := s.values(nil, numbers)
		for target := int64(1); target <= 30; target++ {
			got := s.solutions(values, all, numbers, target)
			if len(got) != len(byTarget[target]) {
				t.Fatalf("seed %d: %v = %d: %q, want %v", seed, numbers, target, got, byTarget[target])
			}
			for _, text := range got {
				if !byTarget[target][text] {
					t.Fatalf("seed %d: %v = %d: %q is not among %v", seed, numbers, target, text, byTarget[target])
				}
			}
		}
	}
}

// everyTree is every binary tree over all of numbers, in every order.
func everyTree(numbers []int64) []*expr {
	if len(numbers) == 1 {
		return []*expr{{op: opNumber, number: numbers[0]}}
	}
	var list []*expr
	for mask := 1; mask < 1<<len(numbers)-1; mask++ {
		var in, out []int64
		for i, n := range numbers {
			if mask>>i&1 == 1 {
				in = append(in, n)
			} else {
				out = append(out, n)
			}
		}
		rights := everyTree(out)
		for _, a := range everyTree(in) {
			for _, b := range rights {
				for _, op := range []byte("+-*/") {
					list = append(list, &expr{op: op, left: a, right: b})
				}
			}
		}
	}
	return list
}

// A solver knows the forms of fewer numbers than its size too.
func TestSolverOfFewerNumbers(t *testing.T) {
	numbers := []int64{2, 5, 9}
	small, large := newSolver(3, "+-*/"), newSolver(5-boolInt(testing.Short()), "+-*/")
	a, allA := small.values(nil, numbers)
	b, allB := large.values(nil, numbers)
	if !slices.Equal(a, b) || allA != allB {
		t.Errorf("%d values from %d on, want %d from %d on", len(b), allB, len(a), allA)
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func BenchmarkSolverValues(b *testing.B) {
	s := newSolver(4, "+-*/")
	numbers := []int64{3, 7, 12, 19}
	var scratch []fraction
	for b.Loop() {
		scratch, _ = s.values(scratch, numbers)
	}
}
