package reports

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"exp/reports/figure"
)

// drawing is a figure that the report tries to draw.
type drawing struct {
	name, title string
	reason      error // why it cannot be drawn; nil: try
	group       string
	draw        func() (figure.Figure, error)
}

// omitted is a figure left out, and why.
type omitted struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Reason string `json:"reason"`
}

// sameAs is the reason for leaving out a curve that equals another figure's.
type sameAs struct{ title string }

func (e *sameAs) Error() string {
	return "the same as “" + e.title + "” at every step of every run"
}

// notTheirs is the reason for leaving out a figure that these arms cannot have. A report does
// not mention it.
type notTheirs struct{ reason string }

func (e notTheirs) Error() string { return e.reason }

// firstFigures are the kinds of figures that a page shows first, most wanted first, and
// firstCount how many.
var firstFigures = []string{"optimum", "pass-at-k", "suites", "differences-share", "accuracy", "diversity", "reward",
	"entropy", "length", "kl"}

const firstCount = 6

// firstOf returns the indices of the figures to show first, of those drawn.
func firstOf(list []drawing, drawn func(i int) bool) (first []int) {
	for _, kind := range firstFigures {
		i := slices.IndexFunc(list, func(d drawing) bool {
			return d.name == kind || strings.HasPrefix(d.name, kind+"-")
		})
		if i >= 0 && drawn(i) && len(first) < firstCount {
			first = append(first, i)
		}
	}
	return first
}

// drawn holds the figures of a report, numbered in order.
type drawn struct {
	figures []numbered
	groups  map[string]gallery
	omitted []omitted
}

// drawAll draws the figures concurrently and numbers the drawn ones. Figures without
// data are omitted; any other error is returned.
func drawAll(list []drawing) (drawn, error) {
	done := make([]figure.Figure, len(list))
	errs := make([]error, len(list))
	_ = concurrently(len(list), func(i int) error { // errs keeps each error
		if errs[i] = list[i].reason; errs[i] == nil {
			done[i], errs[i] = list[i].draw()
		}
		return nil
	})

	out := drawn{groups: map[string]gallery{}, omitted: []omitted{}}
	first := firstOf(list, func(i int) bool { return errs[i] == nil })
	for _, i := range first {
		out.add(done[i], groupFirst)
	}
	for i, a := range list {
		var never notTheirs
		switch {
		case slices.Contains(first, i), errors.As(a.reason, &never):
		case a.reason != nil:
			out.omitted = append(out.omitted, omitted{a.name, a.title, a.reason.Error()})
		case errors.Is(errs[i], figure.ErrNoData):
			out.omitted = append(out.omitted, omitted{a.name, a.title, noDataReason(errs[i])})
		case errs[i] != nil:
			return out, fmt.Errorf("report: %w", errs[i])
		default:
			out.add(done[i], a.group)
		}
	}
	return out, nil
}

// add numbers a figure and puts it into a gallery.
func (d *drawn) add(f figure.Figure, group string) {
	n := numbered{f, len(d.figures) + 1}
	d.figures = append(d.figures, n)
	d.groups[group] = append(d.groups[group], n)
}

// concurrently calls f for 0 ≤ i < n on all cores and returns the errors, joined in that
// order.
func concurrently(n int, f func(i int) error) error {
	errs := make([]error, n)
	next := make(chan int)
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		group.Go(func() {
			for i := range next {
				errs[i] = f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
	return errors.Join(errs...)
}

// noDataReason returns the part of a figure's error that names the missing data.
func noDataReason(err error) string {
	_, reason, found := strings.Cut(err.Error(), figure.ErrNoData.Error()+": ")
	if !found {
		return err.Error()
	}
	return reason
}
