package reports

import (
	"strconv"
	"strings"

	"exp/reports/figure"
)

// keyFigure draws the accuracy of arms that differ in one key of numbers against that key; none if
// they differ in other things.
func (s *source) keyFigure(suite scoredSuite) []drawing {
	key, values := s.variedNumber()
	if key == "" {
		return nil
	}
	short := key[strings.LastIndexByte(key, '.')+1:]
	f := figure.Scatter{Head: figure.Head{Name: "key-" + slug(suite.name), Order: labels(s.arms),
		Title: "Accuracy against " + short + " on " + suite.name,
		About: "Accuracy (pass@1) of each arm against its value of " + key},
		X: figure.Axis{Label: key}, Y: axisOf("pass@1"), Interval: suite.interval}
	low, high := values[0], values[0]
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	f.X.Log = low > 0 && high/low >= figure.Tens
	estimates := suite.metric("pass@1")
	for i, a := range s.arms {
		drawn := figure.ScatterArm{Name: a.label, X: figure.Point(values[i]), Y: estimates[i]}
		if seeds := suite.seeds("pass@1", i); len(seeds) > 1 {
			for _, v := range seeds {
				drawn.Seeds = append(drawn.Seeds, [2]float64{values[i], v})
			}
		}
		f.Arms = append(f.Arms, drawn)
	}
	return []drawing{try(groupResults, f)}
}

// variedNumber returns the only key that differs between all arms, and its values; "" if several
// keys differ, or a value is not a number.
func (s *source) variedNumber() (key string, values []float64) {
	if s.result == nil {
		return "", nil
	}
	for _, a := range s.result.Arms {
		if len(a.Treatment) != 1 {
			return "", nil
		}
		for k, text := range a.Treatment {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil || key != "" && k != key {
				return "", nil
			}
			key, values = k, append(values, v)
		}
	}
	return key, values
}
