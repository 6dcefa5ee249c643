package reports

import (
	"errors"
	"fmt"
	"runtime"
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

// drawn holds the figures of a report, numbered in order.
type drawn struct {
	figures []numbered
	groups  map[string]gallery
	omitted []omitted
}

// drawAll draws the figures concurrently and numbers those that succeed. Figures without
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
	for i, a := range list {
		switch {
		case a.reason != nil:
			out.omitted = append(out.omitted, omitted{a.name, a.title, a.reason.Error()})
		case errors.Is(errs[i], figure.ErrNoData):
			out.omitted = append(out.omitted, omitted{a.name, a.title, noDataReason(errs[i])})
		case errs[i] != nil:
			return out, fmt.Errorf("report: %w", errs[i])
		default:
			f := numbered{done[i], len(out.figures) + 1}
			out.figures = append(out.figures, f)
			out.groups[a.group] = append(out.groups[a.group], f)
		}
	}
	return out, nil
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
