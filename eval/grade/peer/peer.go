// Package peer holds the answer graders of other programs, as they are, their
// mistakes included: what a published score was made with. Each follows its source
// to the letter and is tested against recorded outputs of it; the exception is said
// in prime.go. Beside them stands our own (package grade) under the name "exp".
package peer

import (
	"fmt"
	"strings"

	"exp/eval/grade"
)

// Grader is a way to decide whether an answer is right. It is safe for concurrent
// use.
type Grader struct {
	Name  string
	About string // one line
	// Response grades a whole response, Answer an answer alone: the peers' graders
	// know responses only and get it in the form that they look for.
	Response, Answer func(gold, text string) grade.Verdict
}

// All lists the graders, ours first.
func All() []Grader {
	return []Grader{
		{"exp", "our own: exact, with a reason, and unsure where it does not know", grade.Response, grade.Answer},
		wrapped("math_dapo", "verl's for DAPO and AIME: the last \"Answer:\" of 300 characters, else a box; "+
			"normalised text", MathDAPO, "Answer: ", ""),
		wrapped("math_dapo_original", "as released with FlowRL: without the box", MathDAPOOriginal, "Answer: ", ""),
		wrapped("math_dapo_box", "verl's strict-box mode: the last box of 100 characters, equal as it stands",
			MathDAPOBox, "\\boxed{", "}"),
		wrapped("math_reward", "verl's for MATH: the last box; is_equiv of normalised text", MathReward,
			"\\boxed{", "}"),
		wrapped("gsm8k_strict", "verl's for GSM8K: the last \"#### number\"; equal text", GSM8KStrict, "#### ", ""),
		wrapped("gsm8k_flexible", "verl's for GSM8K: the last number; equal text", GSM8KFlexible, "", ""),
		wrapped("search_r1_em", "search-R1's exact match of the last <answer>", func(gold, s string) grade.Verdict {
			return SearchR1([]string{gold}, s)
		}, "<answer>", "</answer>"),
		{"prime", "prime's and rllm's: the last box; is_equiv, else normalised text and symbolic equality", Prime,
			PrimeAnswer},
	}
}

func wrapped(name, about string, response func(gold, s string) grade.Verdict, before, after string) Grader {
	return Grader{name, about, response, func(gold, a string) grade.Verdict { return response(gold, before+a+after) }}
}

// Names lists the names of All.
func Names() []string {
	var names []string
	for _, g := range All() {
		names = append(names, g.Name)
	}
	return names
}

// ByName finds a grader.
func ByName(name string) (Grader, error) {
	for _, g := range All() {
		if g.Name == name {
			return g, nil
		}
	}
	return Grader{}, fmt.Errorf("there is no grader %q; there are %s", name, strings.Join(Names(), ", "))
}

// verdict of a grader that knows right and wrong only.
func verdict(correct bool, extracted, reason string) grade.Verdict {
	return grade.Verdict{Correct: correct, Sure: true, Extracted: extracted, Reason: reason}
}

// lastRunes is the end of s, n code points long.
func lastRunes(s string, n int) string {
	r := []rune(s)
	return string(r[max(0, len(r)-n):])
}

func equalText(correct bool) string {
	if correct {
		return "equal text"
	}
	return "another text"
}
