package metric

import (
	"slices"
	"strconv"
	"strings"

	"exp/eval"
)

// face is how people see an evaluation metric; package eval has its unit, direction and
// definition.
type face struct {
	title, heading string
	per, axis      string
	shown          Shown
	diversity      bool
}

// faces returns the faces of evaluation metrics by name.
func faces() map[string]face {
	return map[string]face{
		"pass@1": {title: "Accuracy (pass@1)", per: "completions", axis: "accuracy",
			shown: InLists | Tested | Summarized},
		"score_mean": {title: "Mean score", heading: "score", shown: InLists | Tested | Summarized},
		"pass@K":     {title: "Pass@K", shown: InLists | Tested},
		"pass_gap@K": {title: "Gain of K samples over one", shown: WideOnly, diversity: true},
		"best@K":     {title: "Accuracy of the best of K samples by a scorer", shown: Tested},
		"maj@K":      {title: "Accuracy of the majority of K samples", shown: Tested},
		"weighted_majority": {title: "Accuracy of the majority weighted by a scorer",
			shown: Tested},
		"score_auc":     {title: "Scorer's ranking of right above wrong samples"},
		"majority":      {title: "Accuracy of the majority's answer (maj@n)"},
		"majority_tied": {title: "Problems without one most frequent answer", shown: WideOnly},
		"distinct_correct": {title: "Different right answers per problem", heading: "distinct",
			axis: "different right answers", shown: InLists | Tested | Summarized, diversity: true},
		"distinct_correct_solved": {title: "Different right answers per solved problem", diversity: true},
		"solved_two_ways": {title: "Problems solved in two ways or more", heading: "2+ ways",
			shown: Tested, diversity: true},
		"distinct_answers": {title: "Different answers per problem", shown: WideOnly, diversity: true},
		"answer_entropy": {title: "Entropy of the answers", heading: "entropy",
			shown: Described, diversity: true},
		"answer_entropy_norm": {title: "Entropy of the answers over its greatest value",
			shown: WideOnly, diversity: true},
		"format_rate":       {title: "Answers in the right form"},
		"reward_mean":       {title: "Mean reward", shown: WideOnly},
		"truncation_rate":   {title: "Truncated completions"},
		"length_mean":       {title: "Completion length", heading: "length", shown: Described},
		"token_entropy":     {title: "Token entropy", diversity: true},
		"not_graded":        {title: "Completions without a verdict"},
		"distinct_1":        {title: "Distinct 1-grams", shown: WideOnly, diversity: true},
		"distinct_2":        {title: "Distinct 2-grams", diversity: true},
		"distinct_3":        {title: "Distinct 3-grams", shown: WideOnly, diversity: true},
		"distinct_4":        {title: "Distinct 4-grams", shown: WideOnly, diversity: true},
		"self_bleu":         {title: "Likeness of the samples (self-BLEU)", diversity: true},
		"solution_clusters": {title: "Groups of similar samples per problem", diversity: true},
		"correct_clusters": {title: "Groups of similar right samples per problem",
			axis: "groups of right samples", diversity: true},
		"two_correct_clusters": {title: "Problems with two groups of right samples or more",
			shown: WideOnly, diversity: true},
		"option_prob":  {title: "Probability of the right option"},
		"option_brier": {title: "Brier score of the options", shown: WideOnly},
	}
}

// results describes evaluation metrics. For a task with a known optimum, the exact
// distance from it comes first.
func results() []Metric {
	const exact = "only tasks with enumerable outcomes have it"
	const over = ", over all completions"
	one, others := eval.Definitions(nil)[0], eval.Definitions(nil)[1:]
	list := []Metric{
		{Name: "kl_target", Unit: Nats, Title: "Distance from the optimum, KL(target‖π)", Direction: eval.Down,
			Absent: exact, Shown: InLists | Tested | Summarized,
			Definition: "KL divergence of the policy from the optimum" + over},
		collected(one),
		{Name: "policy_entropy", Unit: Nats, Title: "Entropy of the policy", Absent: exact, Shown: InLists,
			Diversity:  true,
			Definition: "entropy of the policy" + over},
	}
	for _, d := range slices.Concat(eval.Families(), others) {
		m := collected(d)
		if OfScorer(m.Name) {
			m.Absent = "only evaluations with a scorer have it: a reward model, a program or a judge that scores " +
				"each sample (eval.final.scorer, exp eval --score-by)"
		}
		list = append(list, m)
	}
	return append(list,
		Metric{Name: "kl_reference", Unit: Nats, Title: "Distance from the start, KL(π‖π_ref)", Absent: exact,
			Definition: "KL divergence of the reference from the policy" + over},
		judged("judged_diversity", "Diversity by a judge", "completions"),
		judged("judged_diversity_right", "Diversity of right completions by a judge", "right completions"),
		Metric{Name: eval.GraderPrefix + "GRADER", Unit: Share, Per: "completions", Title: "Accuracy by GRADER",
			Direction: eval.Up, Absent: "only suites with several graders have it",
			Definition: "pass@1 by the verdicts of GRADER, or of all graders together (union)"},
		Metric{Name: eval.PassPrefix + "KIND", Unit: Share, Per: "completions", Direction: eval.Up,
			Title: "Accuracy on problems of kind KIND", Absent: onlyKinds,
			Definition: "pass@1 on problems of kind KIND"},
		Metric{Name: eval.RewardPrefix + "KIND", Unit: Reward, Title: "Mean reward on problems of kind KIND",
			Direction: eval.Up, Absent: onlyKinds, Definition: "reward_mean on problems of kind KIND"},
		Metric{Name: eval.SourcePrefix + "SOURCE", Unit: Share, Per: "completions", Direction: eval.Up,
			Title: "Accuracy on problems of SOURCE", Absent: "only problems of several data sources have it",
			Definition: "pass@1 on problems of the data source SOURCE, such as a contest or a subject of MMLU"},
		Metric{Name: eval.FormPrefix + "FORM", Unit: Share, Per: "completions", Title: "Answers in the form FORM",
			Absent:     "only suites with several graders have it",
			Definition: "share of samples whose answer has the form FORM"},
		Metric{Name: eval.FollowedPrefix + "GRADER", Unit: Share, Per: "instructions", Direction: eval.Up,
			Title: "Instructions followed by GRADER", Absent: "only suites of instructions have it",
			Definition: "share of all instructions that samples follow by GRADER, IFEval's accuracy per instruction"},
		Metric{Name: eval.ScorePrefix + "GRADER", Unit: Share, Per: "the full score", Direction: eval.Up,
			Title: "Mean score by GRADER", Absent: "only suites with a grader of shares have it, as anls",
			Definition: "mean score of GRADER from 0 to 1, over samples, then over problems, such as ANLS"},
		Metric{Name: "score", Unit: Share, Per: "the full score", Title: "Mean score", Direction: eval.Up,
			Absent:     "only graders of shares have it, as anls",
			Definition: "mean score from 0 to 1, over samples, then over problems, such as ANLS"},
		Metric{Name: "instructions_followed", Unit: Share, Per: "instructions", Title: "Instructions followed",
			Direction: eval.Up, Absent: "only graders of instructions have it",
			Definition: "share of all instructions that samples follow, IFEval's accuracy per instruction"},
		Metric{Name: "tests_passed", Unit: Share, Per: "tests", Title: "Tests passed", Direction: eval.Up,
			Absent:     "only graders of code that count tests have it",
			Definition: "share of a problem's tests that a sample passes, mean over samples, then over problems"})
}

// judged describes the scores of exp diversity.
func judged(name, title, of string) Metric {
	return Metric{Name: name, Unit: Points, Title: title, Heading: "judged", Direction: eval.Up, Diversity: true,
		Absent: "only evaluations that a language model judged have it (exp diversity)", Shown: Tested,
		Axis: Axis{Label: "diversity by a judge"},
		Definition: "score of a problem's " + of + " from 1, nearly all share an approach, to 5 by a language model " +
			"that reads them together, mean over passes"}
}

// collected joins a definition from package eval with its face.
func collected(d eval.Definition) Metric {
	f := faces()[d.Name]
	return Metric{Name: d.Name, Unit: d.Unit, Direction: d.Direction, Definition: d.Definition, Per: f.per,
		Title: f.title, Heading: f.heading,
		Axis: Axis{Label: f.axis}, Shown: f.shown, Diversity: f.diversity}
}

// Families of metrics for each K, by what stands before it.
const (
	PassAt     = "pass@"
	BestAt     = "best@"
	MajorityAt = "maj@"
)

// OfScorer reports whether only evaluations that a reward model scores have a metric.
func OfScorer(name string) bool {
	return strings.HasPrefix(name, BestAt) || strings.HasPrefix(name, MajorityAt) || name == "weighted_majority" ||
		name == "score_auc"
}

// Among returns the names that a place shows, in catalogue order. Of pass@K with K
// above 1 it keeps only the largest K, and so of best@K and maj@K.
func Among(names []string, place Shown) []string {
	var list []string
	for _, m := range ShownIn(place) {
		switch family, ok := strings.CutSuffix(m.Name, "K"); {
		case ok && slices.Contains([]string{PassAt, BestAt, MajorityAt}, family):
			if largest := largestOf(family, names); largest != "" {
				list = append(list, largest)
			}
		case slices.Contains(names, m.Name):
			list = append(list, m.Name)
		}
	}
	return list
}

// largestOf returns the metric of a family with the largest K above 1 among names, or "".
func largestOf(family string, names []string) string {
	largest, most := "", 1
	for _, name := range names {
		if k, ok := KOf(family, name); ok && k > most {
			largest, most = name, k
		}
	}
	return largest
}

// KOf returns the K of a metric of a family; ok is false for other metrics.
func KOf(family, name string) (k int, ok bool) {
	text, ok := strings.CutPrefix(name, family)
	k, err := strconv.Atoi(text)
	return k, ok && err == nil
}

// PassK returns the K of a metric pass@K; ok is false for other metrics.
func PassK(name string) (k int, ok bool) { return KOf(PassAt, name) }
