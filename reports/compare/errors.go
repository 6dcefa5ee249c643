package compare

import (
	"fmt"
	"slices"
	"strings"

	"exp/experiments/store"
)

// NotComparableError reports arms that differ in more than the treatment.
type NotComparableError struct {
	Arms          []ArmResult
	Comparability Comparability
}

// Error names the keys that differ.
func (e *NotComparableError) Error() string {
	var keys []string
	for i := range e.Comparability.Differences {
		if d := &e.Comparability.Differences[i]; d.Refused() {
			keys = append(keys, d.Key)
		}
	}
	return "arms are not comparable: they differ in " + strings.Join(keys, ", ")
}

// Hint suggests what to do.
func (e *NotComparableError) Hint() string {
	return "--vary KEY makes a key part of the treatment, --allow KEY waives it; both are printed with the result"
}

// ExitCode returns the code for a refused comparison.
func (e *NotComparableError) ExitCode() int { return exitRefused }

// exitRefused is the exit code of a refused comparison, as exp help exit-codes lists it.
const exitRefused = 6

// IncompleteArmError reports an arm without a complete run.
type IncompleteArmError struct {
	Label    string
	Excluded []Excluded // of this arm
}

func (e *IncompleteArmError) Error() string {
	var runs []string
	for _, x := range e.Excluded {
		runs = append(runs, fmt.Sprintf("run %.8s (seed %d) is %s", x.RID, x.Seed, x.Reason))
	}
	return fmt.Sprintf("arm %s has no complete run: %s", e.Label, strings.Join(runs, "; "))
}

// Unfinished reports whether runs of the arm have not finished, rather than not been evaluated.
func (e *IncompleteArmError) Unfinished() bool {
	return slices.ContainsFunc(e.Excluded, func(x Excluded) bool { return x.Status != string(store.Done) })
}

// notEvaluated is why a finished run without scores does not count.
const notEvaluated = "without a final evaluation"

// Hint suggests what to run.
func (e *IncompleteArmError) Hint() string {
	if len(e.Excluded) == 0 {
		return "choose existing runs: exp ls"
	}
	x := e.Excluded[0]
	if strings.HasPrefix(x.Numerics, store.ForeignNumerics("")) {
		return "import it again with dumps of its completions; exp metrics shows its series, and exp report draws " +
			"them next to other runs'"
	}
	if x.Reason == notEvaluated { // running it again would not evaluate it
		return fmt.Sprintf("score it on a suite: exp eval %.8s --suite NAME; or name some in eval.final.suites and "+
			"run its configuration again", x.RID)
	}
	if strings.HasPrefix(x.Reason, string(store.Stopped)) { // running it again would stop there again
		return fmt.Sprintf("a condition stopped it; to continue without: exp resume %.8s --stop-if none", x.RID)
	}
	return fmt.Sprintf("run the configuration of %s again with exp run --seeds %d: it resumes where it stopped (exp "+
		"show %.8s shows it)", x.Name, x.Seed, x.RID)
}

// ExitCode returns the code for a refused comparison.
func (e *IncompleteArmError) ExitCode() int { return exitRefused }

// PairingError reports runs scored on different problems under one suite. The suite's
// digest rules this out unless different programs wrote the scores.
type PairingError struct {
	Suite string
	Runs  [2]string // rids
	Why   string
}

func (e *PairingError) Error() string {
	return fmt.Sprintf("suite %s: runs %.8s and %.8s cannot be paired: %s", e.Suite, e.Runs[0], e.Runs[1], e.Why)
}

// ExitCode returns the code for a refused comparison.
func (e *PairingError) ExitCode() int { return exitRefused }

// OptionError reports an invalid option.
type OptionError struct {
	Option  string // "metric"
	Value   string
	Problem string // "does not exist"
	Advice  string
}

func (e *OptionError) Error() string { return fmt.Sprintf("%s %s %s", e.Option, e.Value, e.Problem) }

// Hint lists valid values.
func (e *OptionError) Hint() string { return e.Advice }

// ExitCode returns the code for bad usage.
func (e *OptionError) ExitCode() int { return 2 }
