package metric

// activities say what the phases of a step of training do, and with what.
var activities = map[string][2]string{
	"rollout":              {"sampling", "completions"},
	"greedy":               {"sampling greedy completions", "completions"},
	"grade":                {"scoring", "completions"},
	"old log-probs":        {"log-probs of the old policy", "completions"},
	"reference":            {"log-probs of the reference", "completions"},
	"values":               {"values", "completions"},
	"critic":               {"updating the critic", "completions"},
	"process rewards":      {"process rewards", "completions"},
	"process reward model": {"updating the process reward model", "completions"},
	"policy":               {"updating the policy", "completions"},
	"validation":           {"validating", "completions"},
}

// Activity returns what a phase of a step does, as in "sampling", and the unit of what it has done, as in
// "completions". Both are empty for names that say nothing more than the stage.
func Activity(name string) (work, unit string) {
	p := activities[name]
	return p[0], p[1]
}
