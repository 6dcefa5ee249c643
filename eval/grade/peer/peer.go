// Package peer holds the answer graders of other programs, mistakes included: published scores were made
// with them. Each follows its source to the letter and is tested against recorded outputs of the source;
// prime.go documents the exception. Our own grader (package grade) is listed as "exp".
package peer

import (
	"fmt"
	"strings"

	"exp/eval/grade"
)

// Grader decides whether an answer is right. It is safe for concurrent use.
type Grader struct {
	Name  string
	About string // one line
	// Response grades a whole response, Answer a bare answer. The peers' graders only take responses, so
	// Answer wraps the answer in the form they look for.
	Response, Answer func(gold, text string) grade.Verdict
	// Posed grades a whole response where more of the problem is known; nil: only the gold answer counts.
	Posed func(q Question, response string) grade.Verdict
	// Shares: verdicts are shares of the full score (Verdict.Share), and right from a half.
	Shares bool
}

// All lists the graders, ours first.
func All() []Grader {
	return []Grader{
		{Name: "exp", About: "our own: exact, gives reasons, says when it is unsure", Response: grade.Response,
			Answer: grade.Answer},
		wrapped("math_dapo", "verl's, for DAPO and AIME: the last \"Answer:\" of 300 characters, else a box; "+
			"normalised text", MathDAPO, "Answer: ", ""),
		wrapped("math_dapo_original", "as released with FlowRL: without the box", MathDAPOOriginal, "Answer: ", ""),
		wrapped("math_dapo_box", "verl's strict-box mode: the last box of 100 characters, compared verbatim",
			MathDAPOBox, "\\boxed{", "}"),
		wrapped("math_reward", "verl's, for MATH: the last box; is_equiv of normalised text", MathReward,
			"\\boxed{", "}"),
		wrapped("gsm8k_strict", "verl's, for GSM8K: the last \"#### number\"; equal text", GSM8KStrict, "#### ", ""),
		wrapped("gsm8k_flexible", "verl's, for GSM8K: the last number; equal text", GSM8KFlexible, "", ""),
		wrapped("search_r1_em", "Search-R1's exact match of the last <answer>", func(gold, s string) grade.Verdict {
			return SearchR1([]string{gold}, s)
		}, "<answer>", "</answer>"),
		{Name: "prime", About: "PRIME's and rllm's: the last box; is_equiv, else normalised text and symbolic " +
			"equality", Response: Prime, Answer: PrimeAnswer},
		wrapped("prime_math", "verl's, for numina_*: the words after \"answer is\" or its like, or a box in them; as "+
			"prime, or equal numbers to 1 in 10,000, per cent too", PrimeMath, "\\boxed{", "}"),
		wrapped("geo3k", "verl's, for Geometry3K (mathruler): the last box; as prime. Rewards ask for the form "+
			"<think>…</think> … \\boxed{…}, too", Geo3K, "\\boxed{", "}"),
		wrapped("gpqa", "simple-evals', for GPQA and MMLU: the first \"Answer:\" with a letter from A to D", GPQA,
			"Answer: ", ""),
		wrapped("mmlu_pro", "MMLU-Pro's: the letter from A to J after \"answer is\" or \"answer:\", or the last one",
			MMLUPro, "The answer is ", ""),
		posed("mmmu", "MMMU's: the last letter in brackets or alone, or an option's text; else a number or words in "+
			"key phrases", MMMU, "", ""),
		posed("mmmu_pro", "MMMU-Pro's: the only letter after \"Answer:\", or else as mmmu", MMMUPro, "Answer: ", ""),
		wrapped("chartqa", "relaxed accuracy, for ChartQA: a number within 5 %, or equal text", ChartQA, "", ""),
		posed("mathvista", "MathVista's, without its GPT: the nearest option, or a number with the decimals that the "+
			"problem asks for", MathVista, "Answer: ", ""),
		posed("mathvision", "MATH-Vision's: a letter at an end, the last box or the words after \"the answer is\"; "+
			"equal text, or values to two decimals", MathVision, "\\boxed{", "}"),
		shared("anls", "ANLS, for DocVQA and InfographicVQA: likeness to the nearest gold answer by edits, or 0 "+
			"below a half; right from a half", anls),
		shared("vqav2", "VQA accuracy, for VQAv2: a third for each of ten people who gave the answer; right "+
			"from a half", vqav2),
		shared("textvqa", "the same for TextVQA, OK-VQA and VizWiz, whose programs part 's from words", textvqa),
	}
}

func wrapped(name, about string, response func(gold, s string) grade.Verdict, before, after string) Grader {
	return Grader{Name: name, About: about, Response: response,
		Answer: func(gold, a string) grade.Verdict { return response(gold, before+a+after) }}
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
	return Grader{}, fmt.Errorf("unknown grader %q; known: %s", name, strings.Join(Names(), ", "))
}

// verdict builds the verdict of a grader that only knows right and wrong.
func verdict(correct bool, extracted, reason string) grade.Verdict {
	return grade.Verdict{Correct: correct, Sure: true, Extracted: extracted, Reason: reason}
}

// lastRunes returns the last n code points of s.
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
