package task

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"exp/eval/grade/peer"
	"exp/eval/layout"
	"exp/train/rollout"
)

// Place says where a text gives its answer, for rewards that put the reference answer there.
type Place struct {
	Start int    // text[:Start] comes before the answer: the reasoning
	Gap   string // text between the two
	Close string // text that ends an answer in this form; empty: the completion ends
}

// answerForm is a way to write an answer into a completion.
type answerForm struct {
	open, gap, close string
	start            *regexp.Regexp // ends where the reasoning does
}

// Forms of answers. Within brackets the space that a completion has stays; after other marks there is one.
var (
	boxed   = answerForm{`\boxed{`, "", "}", regexp.MustCompile(`\\f?boxed *\{[ \t]*`)}
	tagged  = answerForm{"<answer> ", "", " </answer>", regexp.MustCompile(`<answer>\s*`)}
	marked  = answerForm{"####", " ", "", regexp.MustCompile(`####`)}
	onALine = answerForm{"####", " ", "", regexp.MustCompile(`(?m)^####`)}
	labeled = answerForm{"Answer:", " ", "", regexp.MustCompile(`(?i)answer\s*:`)}
)

// AnswerPlace finds the place of the answer in a completion of a problem: the last one in any form that its grader
// reads. ok is false without one.
func AnswerPlace(cfg Config, p *rollout.Problem, text string) (x Place, ok bool) {
	for _, f := range formsOf(cfg, p) {
		all := f.start.FindAllStringIndex(text, -1)
		if len(all) == 0 {
			continue
		}
		if at := all[len(all)-1][1]; !ok || at > x.Start {
			x, ok = Place{at, f.gap, f.close}, true
		}
	}
	return x, ok
}

// WithoutReasoning returns the text that begins a completion with nothing but its answer, and the place in it.
func WithoutReasoning(cfg Config, p *rollout.Problem) (text string, x Place) {
	f := formsOf(cfg, p)[0]
	return f.open, Place{len(f.open), f.gap, f.close}
}

// formsOf returns the forms of answers in completions of a problem, the usual one first.
func formsOf(cfg Config, p *rollout.Problem) []answerForm {
	if cfg.Kind != "math" {
		return []answerForm{onALine}
	}
	name := cfg.Math.Grader
	if name == routedGrader {
		facts, _ := layout.FactsOf(p)
		name, _ = peer.Route(facts.Source)
	}
	switch {
	case slices.Contains([]string{"gsm8k_strict", "gsm8k_flexible"}, name):
		return []answerForm{marked}
	case name == "search_r1_em":
		return []answerForm{tagged}
	case name == "math_dapo":
		return []answerForm{labeled, boxed}
	case slices.Contains([]string{"math_dapo_original", "gpqa", "mmlu_pro", "mmmu", "mmmu_pro"}, name):
		return []answerForm{labeled}
	case OwnGrader(cmp.Or(name, "exp")), slices.Contains([]string{"chartqa", "mathvista"}, name),
		peer.GivesShares(name): // which read as ours
		return []answerForm{boxed, tagged, onALine, labeled}
	}
	return []answerForm{boxed}
}

// ReferenceAnswer returns the text of a problem's answer as it stands in its place: the first gold answer.
func ReferenceAnswer(p *rollout.Problem) string { return strings.TrimSpace(p.Answer) }
