package task

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	tests := []struct {
		text  string
		value string
		nums  int
	}{
		{"7", "7", 1},
		{" ( 7 ) ", "7", 1},
		{"12+5*(7-5)", "22", 4},
		{"10-4-3", "3", 3},          // left to right
		{"24/4/3", "2", 3},          //
		{"2+3*4", "14", 3},          // products first
		{"(2+3)*4", "20", 3},        //
		{"8/(3-8/3)", "24", 4},      // through a third
		{"1/3", "1/3", 2},           //
		{"2×3÷4−1", "1/2", 4},       // typeset operators
		{"6∗2·3∕4–1", "8", 5},       //
		{"-3+10", "7", 2},           // a sign
		{"4*-3", "-12", 2},          //
		{"-(2+3)*4", "-20", 3},      //
		{"93 / (39 / 26)", "62", 3}, // as in TinyZero's data
		{"\t5 +\t6", "11", 2},
		{"1/(2-2)", "1/0", 3},
		{"0*(1/0)", "1/0", 3}, // NaN times zero is NaN
	}
	for _, tt := range tests {
		e, err := parse(tt.text)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if got := e.evaluate().String(); got != tt.value {
			t.Errorf("%q is %s, want %s", tt.text, got, tt.value)
		}
		if got := len(e.numbers(nil)); got != tt.nums {
			t.Errorf("%q has %d numbers, want %d", tt.text, got, tt.nums)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "no expression"},
		{"  ", "no expression"},
		{"3+", "ends in the middle of an expression"},
		{"(3+4", "a parenthesis is not closed"},
		{"3+4)", `unexpected ')'`},
		{"()", `unexpected ')'`},
		{"3 4", `unexpected '4'`},
		{"2(3+4)", `unexpected '('`},
		{"(3)(4)", `unexpected '('`},
		{"2**3", `unexpected '*'`},
		{"7//2", `unexpected '/'`},
		{"--3", `unexpected '-'`},
		{"+3", `unexpected '+'`},
		{"3+4=7", `unexpected '='`},
		{"3.5", `unexpected '.'`},
		{"3^2", `unexpected '^'`},
		{"x+1", `unexpected 'x'`},
		{"(3+4×", "ends in the middle of an expression"},
		{"(3=4)", `unexpected '='`},
		{"07", "07 is not a number"},
		{"99999999999999999999", "99999999999999999999 is too large"},
		{"1\xff", `unexpected '�'`},
		{strings.Repeat("(", 100_000), "expression longer than 1024 bytes"},
		{strings.Repeat("(", 1024), "ends in the middle of an expression"},
		{strings.Repeat("9", 1000), "999999999999999999999999… is too large"},
	}
	for _, tt := range tests {
		_, err := parse(tt.text)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q: error %v, want %q", clip(tt.text), err, tt.want)
		}
	}
}

func TestOperators(t *testing.T) {
	tests := []struct{ text, want string }{
		{"7", ""}, {"1/2+3", "+/"}, {"-3*2", "-*"}, {"(1+2)*(3-4)/5", "+-*/"},
	}
	for _, tt := range tests {
		e, err := parse(tt.text)
		if err != nil || e.operators() != tt.want {
			t.Errorf("%q: %q (%v), want %q", tt.text, e.operators(), err, tt.want)
		}
	}
}

func TestFractionsFit(t *testing.T) {
	tests := []struct {
		numbers []int64
		want    bool
	}{
		{[]int64{99, 99, 99, 99, 99, 99}, true},       // 2^6·99^6 = 6e13
		{[]int64{1000, 1000, 1000, 1000, 1000}, true}, // 3e16, the largest that Generate makes
		{[]int64{1 << 30, 1 << 30}, true},             // 2^62
		{[]int64{1 << 30, 1<<30 + 1}, false},          // a little more
		{[]int64{1 << 62, 1 << 62}, false},            //
		{[]int64{3, 0}, false},                        // only positive numbers
		{[]int64{3, -1}, false},                       //
		{make([]int64, 100), false},                   //
	}
	for _, tt := range tests {
		if got := fractionsFit(tt.numbers); got != tt.want {
			t.Errorf("fractionsFit(%v) = %v, want %v", tt.numbers, got, tt.want)
		}
	}
}
