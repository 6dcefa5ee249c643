package rollout

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Choice is a multiple-choice question: the parts of a problem whose Prompt shows the question with its options.
type Choice struct {
	Question string   `json:"question"` // without the options
	Options  []string `json:"options"`  // two or more texts, in the order of their letters
	Right    int      `json:"right"`    // number of the right option, the first if several are; -1: not known
	// Also are the numbers of further right options, in order.
	Also []int `json:"also,omitempty"`
}

// IsRight reports whether option i is right.
func (c *Choice) IsRight(i int) bool { return i == c.Right || slices.Contains(c.Also, i) }

// Letter returns the letter of option i: A, B, …
func Letter(i int) string { return string(rune('A' + i)) }

// Lines returns the options as prompts show them, each on a line with its letter: A) …
func (c *Choice) Lines() string {
	lines := make([]string, len(c.Options))
	for i, text := range c.Options {
		lines[i] = Letter(i) + ") " + text
	}
	return strings.Join(lines, "\n")
}

// Equal returns the first two options with the same text; ok is false if all differ.
func (c *Choice) Equal() (i, j int, ok bool) {
	for j, b := range c.Options {
		for i, a := range c.Options[:j] {
			if a == b {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}

// Same reports whether two questions differ in the order of their options alone. Nil is not a question.
func (c *Choice) Same(other *Choice) bool {
	if c == nil || other == nil || c.Question != other.Question {
		return false
	}
	a, b := slices.Sorted(slices.Values(c.Options)), slices.Sorted(slices.Values(other.Options))
	return slices.Equal(a, b)
}

// OptionScore says how likely a model finds an option as the continuation of a prompt.
type OptionScore struct {
	LogProb float64 `json:"logprob"` // sum over the option's tokens, at temperature 1; nats
	Tokens  int     `json:"tokens"`  // summed over; at least 1
	Chars   int     `json:"chars"`   // Unicode code points of the option, without the space before it
	Bytes   int     `json:"bytes"`   // of its UTF-8, without the space before it
}

// NewOptionScore sums the log-probs [T] of an option's tokens, in float64 and in order.
func NewOptionScore(text string, logProbs []float32) OptionScore {
	s := OptionScore{Tokens: len(logProbs), Chars: utf8.RuneCountInString(text), Bytes: len(text)}
	for _, lp := range logProbs {
		s.LogProb += float64(lp)
	}
	return s
}

// Likeliest returns the option with the largest value; among equal ones the first. It returns -1 without options, and
// if all values are NaN.
func Likeliest(options []OptionScore, value func(OptionScore) float64) int {
	best := -1
	for i, o := range options {
		if v := value(o); v == v && (best < 0 || v > value(options[best])) {
			best = i
		}
	}
	return best
}

// Question is a prompt and the texts that may follow it, as token ids.
type Question struct {
	Prompt  []int32   // at least one
	Options [][]int32 // each at least one
}

// Check returns an error for a question that nothing can be computed for.
func (q *Question) Check() error {
	if len(q.Prompt) == 0 {
		return fmt.Errorf("the prompt is empty")
	}
	for i, o := range q.Options {
		if len(o) == 0 {
			return fmt.Errorf("option %d has no tokens", i)
		}
	}
	return nil
}
