package peer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"exp/eval/grade"
)

// ErrNoRoute is wrapped by errors of Route: verl has no grader for the data source.
var ErrNoRoute = errors.New("verl's default_compute_score knows no grader for this data source")

// Route names the grader that verl's default_compute_score (reward_score/__init__.py) uses for a data
// source. The source must be spelled exactly as there: "gsm8k" is unknown. Sources of programs need
// graders that this package lacks, and are errors too.
func Route(source string) (name string, err error) {
	switch source {
	case "openai/gsm8k":
		return "gsm8k_strict", nil
	case "lighteval/MATH", "DigitalLearningGmbH/MATH-lighteval", "HuggingFaceH4/MATH-500":
		return "math_reward", nil
	case "math_dapo", "math", "math_dapo_reasoning":
		return "math_dapo", nil
	case "numina_aops_forum", "numina_synthetic_math", "numina_amc_aime", "numina_synthetic_amc", "numina_cn_k12",
		"numina_olympiads":
		return "prime_math", nil
	case "hiyouga/geometry3k":
		return "geo3k", nil
	}
	set, search := strings.CutPrefix(source, "searchR1_")
	switch {
	case strings.HasPrefix(source, "aime"):
		return "math_dapo", nil
	case search && slices.Contains([]string{"nq", "triviaqa", "popqa", "hotpotqa", "2wikimultihopqa", "musique",
		"bamboogle"}, set):
		return "search_r1_em", nil
	}
	return "", fmt.Errorf("%w: %q", ErrNoRoute, source)
}

// Sources lists the data sources that Route knows; a * stands for any ending.
func Sources() []string {
	return []string{"openai/gsm8k", "lighteval/MATH", "DigitalLearningGmbH/MATH-lighteval", "HuggingFaceH4/MATH-500",
		"math_dapo", "math", "math_dapo_reasoning", "numina_aops_forum", "numina_synthetic_math", "numina_amc_aime",
		"numina_synthetic_amc", "numina_cn_k12", "numina_olympiads", "hiyouga/geometry3k", "aime*", "searchR1_nq",
		"searchR1_triviaqa", "searchR1_popqa", "searchR1_hotpotqa", "searchR1_2wikimultihopqa", "searchR1_musique",
		"searchR1_bamboogle"}
}

// DefaultScore is default_compute_score: the verdict of the grader that Route names, and the score verl
// would train on. Only search-R1 takes several golds.
func DefaultScore(source string, golds []string, response string) (grade.Verdict, float64, error) {
	name, err := Route(source)
	if err != nil {
		return grade.Verdict{}, 0, err
	}
	if len(golds) == 0 {
		return grade.Verdict{}, 0, errors.New("no gold answer")
	}
	if name == "search_r1_em" {
		return SearchR1(golds, response), SearchR1Score(golds, response, 1, 0), nil
	}
	g, err := ByName(name)
	if err != nil {
		return grade.Verdict{}, 0, err
	}
	v := g.Response(golds[0], response)
	score := 0.0
	switch {
	case name == "geo3k":
		score = geo3kScore(v)
	case v.Correct:
		score = 1
	case name == "math_dapo":
		score = -1
	}
	return v, score, nil
}
