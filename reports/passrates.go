package reports

import (
	"fmt"
	"slices"

	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/experiments/recorded"
	"exp/reports/figure"
)

// chosenProblems is a choice of training problems by their pass rates, and the arms with it.
type chosenProblems struct {
	recorded.Selection
	arms []*arm
}

// chosen lists the different choices of the arms; seeds share theirs.
func (s *source) chosen() (list []chosenProblems) {
	place := map[ident.Digest]int{}
	for _, a := range s.arms {
		for _, r := range a.Runs {
			c, kept, ok := recorded.SelectionOf(r.stages)
			if !ok {
				continue
			}
			i, known := place[kept]
			if !known {
				i = len(list)
				place[kept] = i
				list = append(list, chosenProblems{Selection: c})
			}
			if !slices.Contains(list[i].arms, a) {
				list[i].arms = append(list[i].arms, a)
			}
		}
	}
	return list
}

// passRateFigures draws the training problems by their pass rates before training, one figure for each choice.
func (s *source) passRateFigures() (figures []drawing) {
	list := s.chosen()
	for i, c := range list {
		f := figure.Bar{Y: figure.Axis{Label: "problems", Zero: true}, Head: figure.Head{Name: "pass-rates",
			Title: "Training problems by pass rate", Order: []string{"trained on", "left out"}, About: c.about()}}
		if len(list) > 1 {
			f.Head.Name = fmt.Sprintf("pass-rates-%d", i+1)
			f.Head.Title += ", " + sharedLabel(c.arms, len(s.arms))
		}
		f.Arms = []figure.ArmValues{{Name: "trained on"}, {Name: "left out"}}
		for _, part := range c.Histogram {
			f.Groups = append(f.Groups, part.Rates)
			f.Arms[0].Values = append(f.Arms[0].Values, figure.Point(float64(part.Kept)))
			f.Arms[1].Values = append(f.Arms[1].Values, figure.Point(float64(part.Problems-part.Kept)))
		}
		figures = append(figures, try(groupStages, f))
	}
	return figures
}

// about says what the choice kept.
func (c *chosenProblems) about() string {
	text := fmt.Sprintf("Training problems by the share of their completions that are right before training. %d of "+
		"%d lie between %v and %v; %d are never solved and %d always; the mean is %s", c.Kept, c.Problems,
		c.Min, c.Max, c.Never, c.Always, quantity.Fixed(c.Mean, 3))
	if c.Unrated > 0 {
		text += fmt.Sprintf("; not drawn: %s without a pass rate", quantity.Plural(c.Unrated, "problem"))
	}
	return text
}
