package figure

import (
	"slices"

	"gonum.org/v1/plot/vg"
)

// endLabel is the name of a line, written right of the axes at the height where
// the line ends.
type endLabel struct {
	name string
	ink  ink
	x, y float64   // the line's last point
	at   vg.Length // height of the label's middle
}

const (
	endLabelWidth = 120.0           // at most
	endLabelStep  = textSize * 1.25 // between baselines
	endLabelShift = textSize * 0.9  // at most, from the end of the line
	endLabelGap   = textSize * 1.1  // from the axes: clear of the last number below them
)

// placeEndLabels sets at, the height of each label, so that none covers another.
// It reports false where the labels would mislead and a legend has to do: a line
// that ends before the right edge, or labels that would stand too far from their
// lines.
func (s *sheet) placeEndLabels(labels []endLabel, x, y scale) bool {
	if len(labels) > 6 {
		return false
	}
	order := make([]*endLabel, len(labels))
	for i := range labels {
		l := &labels[i]
		if x.at(l.x) < x.from+0.97*(x.to-x.from) || s.width(l.ink, l.name) > endLabelWidth {
			return false
		}
		l.at = y.at(l.y)
		order[i] = l
	}
	slices.SortStableFunc(order, func(a, b *endLabel) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	spread(order)
	for _, l := range order {
		if shift := l.at - y.at(l.y); shift > endLabelShift || shift < -endLabelShift {
			return false
		}
	}
	return true
}

// spread moves labels, sorted by height, apart to endLabelStep. Labels that touch
// form a block, which is centred on the mean of where its labels want to be.
func spread(labels []*endLabel) {
	type block struct {
		from, to int       // labels
		sum      vg.Length // of wanted heights
	}
	bottom := func(b block) vg.Length {
		n := vg.Length(b.to - b.from)
		return b.sum/n - (n-1)*endLabelStep/2
	}
	var blocks []block
	for i, l := range labels {
		blocks = append(blocks, block{i, i + 1, l.at})
		for n := len(blocks); n > 1; n = len(blocks) {
			a, b := blocks[n-2], blocks[n-1]
			if bottom(b) >= bottom(a)+vg.Length(a.to-a.from)*endLabelStep {
				break
			}
			blocks = append(blocks[:n-2], block{a.from, b.to, a.sum + b.sum})
		}
	}
	for _, b := range blocks {
		for i := b.from; i < b.to; i++ {
			labels[i].at = bottom(b) + vg.Length(i-b.from)*endLabelStep
		}
	}
}

// endLabelRoom is the width that the labels take right of the axes.
func (s *sheet) endLabelRoom(labels []endLabel) vg.Length {
	var w vg.Length
	for _, l := range labels {
		w = max(w, s.width(l.ink, l.name))
	}
	return w + endLabelGap
}

func (p panel) drawEndLabels(labels []endLabel) {
	for _, l := range labels {
		p.label(l.ink, vg.Point{X: p.x.to + endLabelGap, Y: l.at}, left, l.name)
	}
}
