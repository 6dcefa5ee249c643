package compare

import (
	"fmt"
	"strings"

	"exp/experiments/store"
)

// NotComparableError is returned for arms that differ in more than the treatment.
type NotComparableError struct {
	Arms          []ArmResult
	Comparability Comparability
}

// Error names the keys that stand against comparing.
func (e *NotComparableError) Error() string {
	var keys []string
	for i := range e.Comparability.Differences {
		if d := &e.Comparability.Differences[i]; d.Refused() {
			keys = append(keys, d.Key)
		}
	}
	return "arms are not comparable: they differ in " + strings.Join(keys, ", ")
}

// Hint says what can be done.
func (e *NotComparableError) Hint() string {
	return "--vary KEY makes a key part of the treatment, --allow KEY waives it, and either is printed with the result"
}

// ExitCode is that of a refused comparison.
func (e *NotComparableError) ExitCode() int { return exitRefused }

// exitRefused is the exit code of cli-store-reports.md §5.2.
const exitRefused = 6

// IncompleteArmError is returned for an arm without a run that is complete.
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

// Hint names what to run.
func (e *IncompleteArmError) Hint() string {
	if len(e.Excluded) == 0 {
		return "choose runs that exist: exp ls"
	}
	x := e.Excluded[0]
	if strings.HasPrefix(x.Numerics, store.ForeignNumerics("")) {
		return "import it again with dumps of its completions; its series are in exp metrics, and exp report draws them beside others"
	}
	return fmt.Sprintf("exp run the configuration of %s with --seeds %d again: it goes on where it stopped (exp show %.8s shows it)", x.Name, x.Seed, x.RID)
}

// ExitCode is that of a refused comparison.
func (e *IncompleteArmError) ExitCode() int { return exitRefused }

// PairingError is returned when runs were scored on different problems under one
// suite, which the suite's digest rules out: the scores were written by different
// programs.
type PairingError struct {
	Suite string
	Runs  [2]string // rids
	Why   string
}

func (e *PairingError) Error() string {
	return fmt.Sprintf("suite %s: runs %.8s and %.8s cannot be paired: %s", e.Suite, e.Runs[0], e.Runs[1], e.Why)
}

// ExitCode is that of a refused comparison.
func (e *PairingError) ExitCode() int { return exitRefused }

// OptionError is returned for an option that cannot be.
type OptionError struct {
	Option  string // "metric"
	Value   string
	Problem string // "is not there"
	Advice  string
}

func (e *OptionError) Error() string { return fmt.Sprintf("%s %s %s", e.Option, e.Value, e.Problem) }

// Hint says what there is.
func (e *OptionError) Hint() string { return e.Advice }

// ExitCode is that of bad usage.
func (e *OptionError) ExitCode() int { return 2 }
