package figure

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
)

// Distribution compares policies over a small set of outcomes with the
// distribution that they should have: one panel per arm, the target as filled
// steps, the policy as an outline, its divergence in the panel's title.
type Distribution struct {
	Head
	Outcome Axis      // what the outcomes are; linear
	Target  []float64 // [outcomes] probabilities
	Arms    []DistributionArm
}

// DistributionArm is one arm's policies. With several seeds the outline is
// their mean and the band spans the smallest to the largest.
type DistributionArm struct {
	Name     string
	Policies [][]float64 // [seeds][outcomes] probabilities
	KL       []float64   // [seeds] KL(target ‖ policy), nats; +Inf where the policy lacks a mode
}

type distributionData struct {
	Outcome string             `json:"outcome"`
	Target  []number           `json:"target"`
	Arms    []distributionLine `json:"arms"`
}

type distributionLine struct {
	Name     string     `json:"name"`
	Policies [][]number `json:"policies"`
	Mean     []number   `json:"mean"`
	KL       []number   `json:"kl"`
}

// Draw draws the figure; its height grows with the number of arms. Lengths that
// differ, and anything that is not a probability, are errors; no arm with a policy
// is ErrNoData.
func (f Distribution) Draw() (Figure, error) {
	if err := f.Head.check(); err != nil {
		return Figure{}, err
	}
	if f.Outcome.Log {
		return Figure{}, f.errorf("outcomes are numbered from 0, which a logarithmic axis does not have")
	}
	if err := f.checkNumbers(); err != nil {
		return Figure{}, err
	}
	names := make([]string, len(f.Arms))
	tracks := make([]track, len(f.Arms))
	some := false
	for i, a := range f.Arms {
		names[i] = a.Name
		tracks[i] = a.track(len(f.Target))
		some = some || len(a.Policies) > 0
	}
	if !some || len(f.Target) == 0 {
		return Figure{}, f.noData("no arm has a policy")
	}
	g := gridOf(len(f.Arms))
	k := looks(f.Order, names)
	return f.render(picture{
		caption: f.caption(names),
		alt:     f.alt(),
		data:    f.data(tracks),
		height:  g.height(),
		draw:    func(s *sheet) { f.draw(s, g, k, tracks) },
	})
}

func (f Distribution) checkNumbers() error {
	probabilities := func(what string, ps []float64) error {
		if len(ps) != len(f.Target) {
			return f.errorf("%s has %d outcomes, the target %d", what, len(ps), len(f.Target))
		}
		for i, p := range ps {
			if !(p >= 0 && p <= 1+1e-6) {
				return f.errorf("%s, outcome %d: %v is not a probability", what, i, p)
			}
		}
		return nil
	}
	if err := probabilities("target", f.Target); err != nil {
		return err
	}
	for _, a := range f.Arms {
		if len(a.KL) != len(a.Policies) {
			return f.errorf("arm %q has %d divergences for %d policies", a.Name, len(a.KL), len(a.Policies))
		}
		for i, policy := range a.Policies {
			if err := probabilities(fmt.Sprintf("arm %q, seed %d", a.Name, i), policy); err != nil {
				return err
			}
		}
	}
	return nil
}

// track is the mean over seeds with its range.
func (a DistributionArm) track(outcomes int) track {
	steps := make([]float64, outcomes)
	for i := range steps {
		steps[i] = float64(i)
	}
	seeds := make([]Series, len(a.Policies))
	for i, p := range a.Policies {
		seeds[i] = Series{Step: steps, Y: p}
	}
	return merge(seeds, Axis{}, Range)
}

func (f Distribution) draw(s *sheet, g panels, k []look, tracks []track) {
	top := s.heading(f.Title)
	top -= s.legend(f.legend(), top)
	n := len(f.Target)
	var y extent
	y.add(Axis{}, f.Target...)
	for _, t := range tracks {
		y.add(Axis{}, t.y...)
		y.add(Axis{}, t.hi...)
	}
	for i, a := range f.Arms {
		xs := scale{axis: f.Outcome, lo: -0.5, hi: float64(n) - 0.5, whole: true}
		ys := newScale(g.firstOnly(i, Axis{Label: "probability", Zero: true}), y, 0.04)
		fr := g.frame(s, i, top, xs)
		fr.grid = gridY
		fr.title = []words{
			{clean(a.Name), ink{size: labelSize, color: k[i].ink, bold: true}},
			{a.divergence("KL ", ""), ink{size: textSize, color: inkColor}},
		}
		p := s.panel(xs, ys, fr)
		p.fill(fillColor, p.steps(f.Target)...)
		p.fill(faded(k[i].color, 0.35), p.stepBand(tracks[i])...)
		p.line(stroke{width: 1.6, color: k[i].color}, p.steps(tracks[i].y)...)
	}
}

// steps is the upper edge of one column per value, the i-th around x = i, from and to 0.
func (p panel) steps(values []float64) []vg.Point {
	pts := []vg.Point{p.at(-0.5, 0)}
	for i, v := range values {
		pts = append(pts, p.at(float64(i)-0.5, v), p.at(float64(i)+0.5, v))
	}
	return append(pts, p.at(float64(len(values))-0.5, 0))
}

// stepBand is the area between the steps of lo and of hi; empty for one seed.
func (p panel) stepBand(t track) []vg.Point {
	if slices.ContainsFunc(t.lo, math.IsNaN) {
		return nil
	}
	lower := p.steps(t.lo)
	slices.Reverse(lower)
	return append(p.steps(t.hi), lower...)
}

func (f Distribution) legend() []entry {
	entries := []entry{boxEntry("target", func(s *sheet, box vg.Rectangle) {
		s.rect(box.Min.X, box.Min.Y, box.Max.X, box.Max.Y, fillColor)
	})}
	several := slices.ContainsFunc(f.Arms, func(a DistributionArm) bool { return len(a.Policies) > 1 })
	name := "policy after training"
	if several {
		name += ", mean over seeds"
	}
	return append(entries, strokeEntry(name, stroke{width: 1.6, color: axisColor}))
}

// divergence writes KL(target ‖ π) as a name, "0.021", a unit, and " (0.019 to 0.024)".
func (a DistributionArm) divergence(name, unit string) string {
	if len(a.KL) == 0 {
		return "no policy"
	}
	var sum float64
	for _, v := range a.KL {
		sum += v
	}
	lo, hi := slices.Min(a.KL), slices.Max(a.KL)
	texts := values(sum/float64(len(a.KL)), lo, hi)
	text := name + texts[0] + unit
	if lo < hi {
		text += " (" + texts[1] + " to " + texts[2] + ")"
	}
	return text
}

func (f Distribution) caption(names []string) Caption {
	counts := make([]int, len(f.Arms))
	for i, a := range f.Arms {
		counts[i] = len(a.Policies)
	}
	out := Caption{
		About:    f.About,
		Seeds:    seedsText(names, counts),
		Interval: "Outlines are means over seeds, bands and brackets " + Range.String(),
		Units:    units(f.Outcome, Axis{Label: "probability"}),
	}
	if slices.Max(counts) < 2 {
		out.Interval = "One seed has no band"
	}
	return out
}

func (f Distribution) alt() string {
	var parts []string
	for _, a := range f.Arms {
		parts = append(parts, a.Name+": "+a.divergence("KL(target ‖ π) = ", " nats"))
	}
	return "Probability of each outcome under the target and under the policy of each arm. " + enumerate(parts) + "."
}

func (f Distribution) data(tracks []track) distributionData {
	out := distributionData{Outcome: f.Outcome.title(), Target: numbers(f.Target), Arms: []distributionLine{}}
	for i, a := range f.Arms {
		line := distributionLine{Name: a.Name, Mean: numbers(tracks[i].y), KL: numbers(a.KL)}
		for _, p := range a.Policies {
			line.Policies = append(line.Policies, numbers(p))
		}
		out.Arms = append(out.Arms, line)
	}
	return out
}
