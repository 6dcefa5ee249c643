package metric

import "exp/eval"

// validationPrefix starts the names of evaluation metrics on validation problems during
// training.
const validationPrefix = "val/"

// onlyOnline explains why a run may lack validation metrics.
const onlyOnline = "eval.online.every_steps is 0"

// onlySeveral is onlyOnline for metrics that compare the samples of a problem.
const onlySeveral = onlyOnline + ", or eval.online.n is 1"

// validation describes metrics on validation problems during training: our
// evaluation's, and verl's (process_validation_metrics).
func validation() []Metric {
	const onValidation = " on validation problems"
	return append([]Metric{
		{Name: "val/pass@1", Unit: Share, Per: "completions", Title: "Accuracy" + onValidation, Heading: "val",
			Direction: eval.Up, Absent: onlyOnline,
			Shown: OnProgress | OverSteps, Axis: Axis{Label: "accuracy", Zero: true},
			Definition: "share of right completions on held-out validation problems, sampled from the weights " +
				"after the step; step 0 is the start"},
		{Name: "val/distinct_correct", Unit: "solutions", Per: "problem",
			Title: "Different right answers" + onValidation, Direction: eval.Up, Absent: onlyOnline,
			Diversity: true, Axis: Axis{Label: "different right answers"},
			Definition: "different right answers among the samples of a validation problem, mean over problems"},
		{Name: "val/solution_clusters", Unit: "groups", Per: "problem",
			Title: "Groups of similar solutions" + onValidation, Absent: onlySeveral,
			Diversity: true, Axis: Axis{Label: "effective groups"},
			Definition: "effective number of groups of similar texts among the samples of a validation problem, " +
				"mean over problems"},
		{Name: "val/METRIC", Title: "METRIC" + onValidation, Absent: onlyOnline,
			Definition: "the evaluation's METRIC on held-out validation problems, sampled from the weights after " +
				"the step; step 0 is the start"},
		{Name: "val-core/SOURCE/VARIABLE/STATISTIC", Title: "verl's STATISTIC of VARIABLE on SOURCE",
			Absent: onlyOnline,
			Definition: "STATISTIC of VARIABLE over a problem's N samples, mean over problems: verl's main " +
				"validation metrics (mean@N, best@N/mean, maj@N/mean)"},
		{Name: "val-aux/SOURCE/VARIABLE/STATISTIC", Title: "verl's STATISTIC of VARIABLE on SOURCE",
			Absent: onlyOnline,
			Definition: "STATISTIC of VARIABLE over a problem's samples, mean over problems: verl's other " +
				"validation metrics (such as std@N, worst@N/mean, best@N/std, and all of fewer samples than N)"},
	}, extent(Metric{Name: "val-aux/num_turns", Unit: "messages", Title: "Messages" + onValidation,
		Absent:     onlyOnline + ", or the run has no tools (rollout.tools)",
		Definition: "messages of a validation's conversation (verl's num_turns)"}, "completions")...)
}

// onValidation describes an evaluation metric measured during training.
func onValidation(name, measured string) Metric {
	m, known := Find(measured)
	if !known {
		return Metric{Name: name, Title: measured + " on validation problems", Absent: onlyOnline}
	}
	m.Name, m.Title, m.Heading, m.Shown, m.Absent = name, m.Title+" on validation problems", "", 0, onlyOnline
	if needsSeveral(measured) {
		m.Absent = onlySeveral
	}
	m.Definition += "; on validation problems, sampled from the weights after the step; step 0 is the start"
	return m
}

// needsSeveral reports whether an evaluation metric has no value for a problem with one sample, whose texts
// cannot be compared.
func needsSeveral(name string) bool {
	if k, ok := PassK(name); ok {
		return k > 1
	}
	one := eval.Item{Samples: 1, Graded: 1, Tokens: 1}
	several := one
	several.Texts = &eval.Texts{}
	for _, d := range eval.Definitions(nil) {
		if d.Name == name {
			_, alone := d.Value(one)
			_, compared := d.Value(several)
			return compared && !alone
		}
	}
	return false
}
