package query

import (
	"bufio"
	"context"
	"io"
	"slices"
	"strings"

	"exp/experiments/store"
)

// Select returns the runs of selections, each once, with current statuses, in the order
// of the selections and newest first within one. A selection is a reference, which may
// name several runs (All), a filter, or "-" for references on stdin, one per word. A
// filter may select nothing; a reference that matches nothing is an error.
func (f Finder) Select(ctx context.Context, selections []string, stdin io.Reader) ([]store.Run, error) {
	var all []store.Run
	for _, s := range selections {
		runs, err := f.selectOne(ctx, s, stdin)
		if err != nil {
			return nil, err
		}
		all = union(all, runs)
	}
	return all, nil
}

func (f Finder) selectOne(ctx context.Context, selection string, stdin io.Reader) ([]store.Run, error) {
	switch {
	case selection == "-":
		return f.selectWords(ctx, stdin)
	case isFilter(selection):
		filter, err := f.Schema.Parse(selection)
		if err != nil {
			return nil, err
		}
		l, err := f.List(ctx, filter, nil)
		return l.Runs, err
	}
	runs, err := f.All(ctx, selection)
	if err != nil || selection != running {
		return runs, err
	}
	runs = slices.DeleteFunc(runs, func(r store.Run) bool { return r.Status != store.Running })
	if len(runs) == 0 {
		return nil, &NotFoundError{Ref: selection, Hint: noneRunning}
	}
	return runs, nil
}

func (f Finder) selectWords(ctx context.Context, r io.Reader) ([]store.Run, error) {
	var all []store.Run
	words := bufio.NewScanner(r)
	words.Split(bufio.ScanWords)
	for words.Scan() {
		runs, err := f.All(ctx, words.Text())
		if err != nil {
			return nil, err
		}
		all = union(all, runs)
	}
	return all, words.Err()
}

// isFilter reports whether a selection is a filter: it has an operator or a space.
func isFilter(selection string) bool {
	if strings.HasPrefix(selection, "@") || strings.HasPrefix(selection, "tag:") ||
		strings.HasPrefix(selection, "xid:") {
		return false
	}
	return strings.ContainsAny(selection, special+" \t\n")
}

// union appends to a the runs of b that are not in it.
func union(a, b []store.Run) []store.Run {
	seen := make(map[int64]bool, len(a))
	for _, r := range a {
		seen[r.ID] = true
	}
	for _, r := range b {
		if !seen[r.ID] {
			seen[r.ID] = true
			a = append(a, r)
		}
	}
	return a
}
