// Package instruct checks whether a response follows verifiable instructions, such as "at least 300 words" or "no
// commas". It knows the instructions of IFEval (Zhou et al. 2023, Instruction-Following Evaluation for Large Language
// Models, arXiv 2311.07911), and of IFBench with its training sets (Pyatkin et al. 2025, Generalizing
// Verifiable Instruction Following, arXiv 2507.02833). It follows the rules of the published programs: IFEval's in
// lm-eval, IFBench at db69a6f, and of open-instruct at e6c3044 both IFEvalG and the older functions for Tulu 3. Where
// they check less than a prompt asks for, so does this package, and comments say so; where they break off with an
// error, a response does not follow.
//
// Texts are read as Python reads them: words, white space and letter case are Unicode's, and keywords are regular
// expressions. The published programs draw random numbers for arguments that a row lacks; here those are errors. Three
// things differ: scripts and function words tell languages apart (language.go), a letter to count may be any
// character, and a list of words tells verbs from others (verb.go).
package instruct

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Instruction is one verifiable instruction of a prompt, as IFEval's rows have it.
type Instruction struct {
	ID   string         `json:"id"`             // such as length_constraints:number_words
	Args map[string]any `json:"args,omitempty"` // such as num_words: 300, relation: "at least"
}

// Check reports whether a response follows an instruction. It is pure, and safe for concurrent use.
type Check func(response string) bool

// maker makes the check of an instruction from its arguments.
type maker func(a *arguments) Check

// makers maps the id of every instruction to its maker.
func makers() map[string]maker {
	all := map[string]maker{}
	for _, family := range []map[string]maker{keywordMakers(), lengthMakers(), formatMakers(), wholeMakers(),
		countMakers(), ratioMakers(), wordMakers(), sequenceMakers(), markMakers(), taskMakers(), copyMakers(),
		edgeMakers(), olderMakers()} {
		maps.Copy(all, family)
	}
	return all
}

// IDs lists the ids of all instructions, sorted.
func IDs() []string { return slices.Sorted(maps.Keys(makers())) }

// Check makes the check. The error names the instruction, and the argument at fault.
func (i Instruction) Check() (Check, error) {
	all := makers()
	name := strings.TrimSpace(i.ID)
	make, ok := all[name]
	if !ok {
		return nil, fmt.Errorf("unknown instruction %q; known: %s", i.ID, strings.Join(nearest(name), ", "))
	}
	a := &arguments{values: i.Args}
	check := make(a)
	if a.err != nil {
		return nil, fmt.Errorf("instruction %s: %w", name, a.err)
	}
	return check, nil
}

// nearest lists the ids of the same family as an unknown one, which is what stands before the colon; or all families.
func nearest(name string) []string {
	family, _, _ := strings.Cut(name, ":")
	var same, families []string
	for _, id := range IDs() {
		f, _, _ := strings.Cut(id, ":")
		if f == family {
			same = append(same, id)
		}
		if f != id {
			f += ":…"
		}
		families = append(families, f)
	}
	if len(same) > 0 {
		return same
	}
	return slices.Compact(families)
}

// Rules say which readings of a response count.
type Rules string

const (
	// Strict takes the response as it is.
	Strict Rules = "strict"
	// Loose accepts also what remains without asterisks, without the first line, without the last one, or both: a
	// greeting or markdown around the answer does no harm.
	Loose Rules = "loose"
)

// Followed reports for each check whether the response follows it. A reading without any text follows nothing.
func Followed(checks []Check, response string, rules Rules) []bool {
	readings := []string{response}
	if rules == Loose {
		readings = loose(response)
	}
	readings = slices.DeleteFunc(readings, func(s string) bool { return strip(s) == "" })
	out := make([]bool, len(checks))
	for i, check := range checks {
		out[i] = slices.ContainsFunc(readings, check)
	}
	return out
}

// loose returns the eight readings of a response: with and without asterisks, of all lines, without the first, without
// the last, and without both.
func loose(response string) []string {
	lines := strings.Split(response, "\n")
	last := len(lines) - 1
	readings := []string{response}
	for _, part := range [][]string{lines[1:], lines[:last], lines[1:max(1, last)]} {
		readings = append(readings, strip(strings.Join(part, "\n")))
	}
	for _, s := range slices.Clone(readings) {
		readings = append(readings, strings.ReplaceAll(s, "*", ""))
	}
	return readings
}

// Answer names the instructions that a response follows, for Named.
func Answer(ids []string) string { return strings.Join(ids, " ") }

// Named counts the instructions that an Answer names.
func Named(answer string) int { return len(strings.Fields(answer)) }

// relation compares a count with the number that an instruction names.
type relation func(got, want int) bool

func relations() map[string]relation {
	return map[string]relation{
		"at least":  func(got, want int) bool { return got >= want },
		"less than": func(got, want int) bool { return got < want },
	}
}

// arguments reads the arguments of an instruction and keeps the first error.
type arguments struct {
	values map[string]any
	err    error
}

func (a *arguments) fail(format string, args ...any) {
	a.err = cmp.Or(a.err, fmt.Errorf(format, args...))
}

// text returns an argument that is a text with something in it.
func (a *arguments) text(name string) string {
	s, ok := a.values[name].(string)
	if !ok || strip(s) == "" {
		a.fail("%s must be a text with something in it, not %v", name, shown(a.values[name]))
	}
	return strip(valid(s))
}

// valid replaces bytes that are not UTF-8 by U+FFFD: regular expressions refuse them.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// word returns an argument that is such a text, or a list whose first element counts, as in open-instruct's rows.
func (a *arguments) word(name string) string {
	if list, ok := a.values[name].([]any); ok && len(list) > 0 {
		first := arguments{values: map[string]any{name: list[0]}}
		s := first.text(name)
		a.err = cmp.Or(a.err, first.err)
		return s
	}
	return a.text(name)
}

// verbatim returns an argument that is such a text, with the white space around it.
func (a *arguments) verbatim(name string) string {
	a.text(name)
	s, _ := a.values[name].(string)
	return valid(s)
}

// texts returns an argument that is a list of such texts.
func (a *arguments) texts(name string) []string {
	var list []string
	switch v := a.values[name].(type) {
	case []string:
		list = v
	case []any:
		for _, item := range v {
			s, ok := item.(string)
			if !ok {
				a.fail("%s has %v, which is not a text", name, shown(item))
			}
			list = append(list, s)
		}
	}
	if len(list) == 0 || slices.Contains(list, "") {
		a.fail("%s must be a list of texts, not %v", name, shown(a.values[name]))
	}
	list = slices.Clone(list)
	for i, s := range list {
		list[i] = valid(s)
	}
	return list
}

// count returns an argument that is a whole number, at least the least one.
func (a *arguments) count(name string, least int) int {
	n, ok := whole(a.values[name])
	if !ok || n < least {
		a.fail("%s must be a whole number from %d, not %v", name, least, shown(a.values[name]))
	}
	return n
}

// share returns an argument that is a number of percent.
func (a *arguments) share(name string) float64 {
	x, ok := number(a.values[name])
	if !ok || !(x >= 0 && x <= 100) {
		a.fail("%s must be a number of percent from 0 to 100, not %v", name, shown(a.values[name]))
	}
	return x
}

// relation returns how an argument wants a count to be compared.
func (a *arguments) relation(name string) relation {
	s, _ := a.values[name].(string)
	r, ok := relations()[s]
	if !ok {
		a.fail("%s must be %s, not %v", name, `"at least" or "less than"`, shown(a.values[name]))
	}
	return r
}
