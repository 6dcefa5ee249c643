package trackers

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// points collects the points of series in file order.
type points struct {
	series map[string]map[int64]float64
	// Wall-clock times, if the file has them.
	first, last time.Time
	repeated    int // points that replaced another value of their step
}

func newPoints() *points { return &points{series: map[string]map[int64]float64{}} }

// add adds a point. It replaces an earlier point of the same step, as after a resume from
// a checkpoint.
func (p *points) add(name string, step int64, value float64) {
	s := p.series[name]
	if s == nil {
		s = map[int64]float64{}
		p.series[name] = s
	}
	if had, ok := s[step]; ok && had != value && !(math.IsNaN(had) && math.IsNaN(value)) {
		p.repeated++
	}
	s[step] = value
}

// at records a time.
func (p *points) at(t time.Time) {
	if p.first.IsZero() || t.Before(p.first) {
		p.first = t
	}
	if t.After(p.last) {
		p.last = t
	}
}

// Series is a metric of a foreign run.
type Series struct {
	Name   string
	Steps  []int64 // ascending
	Values []float64
}

func (p *points) list() []Series {
	list := make([]Series, 0, len(p.series))
	for _, name := range slices.Sorted(maps.Keys(p.series)) {
		s := Series{Name: name, Steps: slices.Sorted(maps.Keys(p.series[name]))}
		for _, step := range s.Steps {
			s.Values = append(s.Values, p.series[name][step])
		}
		list = append(list, s)
	}
	return list
}

// steps returns all steps with a point, ascending.
func steps(list []Series) []int64 {
	var all []int64
	for _, s := range list {
		all = append(all, s.Steps...)
	}
	slices.SortFunc(all, cmp.Compare)
	return slices.Compact(all)
}
