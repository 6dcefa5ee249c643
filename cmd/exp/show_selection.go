package main

import (
	"fmt"
	"math"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
)

// selection shows which training problems pass rates chose.
func (p *showPage) selection() error {
	s := p.s.Selection
	if s == nil {
		return nil
	}
	p.Heading(fmt.Sprintf("training problems by pass rate (%d of %d kept: %v to %v)", s.Kept, s.Problems, s.Min,
		s.Max))
	most := 0
	for _, part := range s.Histogram {
		most = max(most, part.Problems)
	}
	const width = 30
	mark := "#"
	if p.Layout.Unicode {
		mark = "█"
	}
	var rows [][]any
	for _, part := range s.Histogram {
		if part.Problems == 0 {
			continue
		}
		length := int(math.Ceil(width * float64(part.Problems) / float64(most)))
		rows = append(rows, []any{part.Rates, part.Problems, strings.Repeat(mark, length), part.Kept})
	}
	if s.Unrated > 0 {
		rows = append(rows, []any{"unknown", s.Unrated, "", 0})
	}
	columns := []cli.Column{{Title: "pass rate"}, {Title: "problems"},
		{Title: "", Style: func(any) term.Style { return term.Accent }}, {Title: "kept"}}
	if err := p.Table(columns, rows); err != nil {
		return err
	}
	p.Line("mean pass rate %s; each problem's: exp problems %s", quantity.Fixed(s.Mean, 3), p.s.Run.Short())
	return nil
}
