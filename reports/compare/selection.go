package compare

import (
	"context"
	"io"
	"slices"
	"strings"

	"exp/experiments/query"
	"exp/experiments/store"
)

// Selection names runs and says how they form arms. Each of several selections is an arm;
// the runs of a single one, and of all with By, are grouped as Arms does. Runs of one
// experiment are one arm, whatever names them.
type Selection struct {
	Runs  []string  // as query.Finder.Select reads them
	Vs    string    // selects the arm that the others are compared with, the last; "": none
	By    string    // as in Arms
	Stdin io.Reader // for the selection "-"
}

// EmptySelectionError reports a selection without runs.
type EmptySelectionError struct {
	Selection string
}

func (e *EmptySelectionError) Error() string { return e.Selection + " selects no runs" }

// Hint says where to look.
func (e *EmptySelectionError) Hint() string { return "exp ls shows what there is" }

// ExitCode returns the code for something that does not exist.
func (e *EmptySelectionError) ExitCode() int { return 3 }

// Arms forms the arms.
func (s Selection) Arms(ctx context.Context, f query.Finder) ([]Arm, error) {
	var against []store.Run
	if s.Vs != "" {
		var err error
		if against, err = f.Select(ctx, []string{s.Vs}, s.Stdin); err != nil {
			return nil, err
		}
		if len(against) == 0 {
			return nil, &EmptySelectionError{"--vs " + s.Vs}
		}
	}
	parts := [][]string{s.Runs}
	if s.By == "" && len(s.Runs) > 1 {
		parts = nil
		for _, one := range s.Runs {
			parts = append(parts, []string{one})
		}
	}
	var arms []Arm
	excluded := 0 // named runs that Vs names, too
	for _, part := range parts {
		runs, err := f.Select(ctx, part, s.Stdin)
		if err != nil {
			return nil, err
		}
		selected := len(runs)
		runs = without(runs, against)
		excluded += selected - len(runs)
		switch {
		case len(runs) == 0 && selected > 0:
			// Vs names an arm of the list.
		case len(runs) == 0:
			return nil, &EmptySelectionError{strings.Join(part, " ")}
		case len(parts) == 1:
			if arms, err = Arms(ctx, f.DB, runs, s.By); err != nil {
				return nil, err
			}
		default:
			arms = addArm(arms, Arm{Runs: runs})
		}
	}
	if len(arms) == 0 && excluded > 0 {
		return nil, &OptionError{Option: "--vs", Value: s.Vs, Problem: "selects all runs that are named",
			Advice: "a run cannot be compared with itself: name others"}
	}
	if len(against) > 0 {
		arms = append(arms, Arm{Runs: against})
	}
	return arms, nil
}

// without returns the runs of a list that are not among others.
func without(list, others []store.Run) []store.Run {
	return slices.DeleteFunc(slices.Clone(list), func(r store.Run) bool {
		return slices.ContainsFunc(others, func(o store.Run) bool { return o.ID == r.ID })
	})
}

// addArm appends an arm, or adds its runs to the arm of the same experiment: users may
// name single runs, and every seed of an experiment belongs to its arm.
func addArm(arms []Arm, a Arm) []Arm {
	for i := range arms {
		all := slices.Concat(arms[i].Runs, without(a.Runs, arms[i].Runs))
		if !slices.ContainsFunc(all, func(r store.Run) bool { return r.XID != all[0].XID }) {
			arms[i].Runs = all
			return arms
		}
	}
	return append(arms, a)
}
