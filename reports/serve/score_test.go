package serve

import (
	"testing"

	"exp/experiments/recorded"
)

// Intervals are clipped to the metric's range, and negative numbers have a real minus sign.
func TestScoreIntervals(t *testing.T) {
	lo, hi := -0.036, 1.203
	for metric, want := range map[string]string{
		"distinct_correct": "[0.000, 1.203]", "pass@1": "[0.000, 1.000]", "reward_mean": "[−0.036, 1.203]",
		"of another program": "[−0.036, 1.203]",
	} {
		if _, got := scoreText(metric, &recorded.Score{Value: 0.5, Lo: &lo, Hi: &hi}); got != want {
			t.Errorf("%s: %s, want %s", metric, got, want)
		}
	}
}

// The best scores of a column are marked, in the metric's direction; none if all are equal.
func TestBestScores(t *testing.T) {
	for _, tt := range []struct {
		metric string
		scores []float64
		want   string
	}{
		{"pass@1", []float64{0.1, 0.3, 0.3}, "-bb"}, {"truncation_rate", []float64{0.1, 0.3, 0.3}, "b--"},
		{"pass@1", []float64{0, 0, 0}, "---"}, {"pass@1", []float64{1}, "-"},
	} {
		s := benchmarkSuite{Metrics: []headCell{{Link: tt.metric}}}
		for _, v := range tt.scores {
			s.Rows = append(s.Rows, benchmarkRow{Cells: []scoreCell{{Text: "x", value: v}}})
		}
		s.markBest()
		got := ""
		for _, r := range s.Rows {
			got += map[bool]string{true: "b", false: "-"}[r.Cells[0].Best]
		}
		if got != tt.want {
			t.Errorf("%s %v: %s, want %s", tt.metric, tt.scores, got, tt.want)
		}
	}
}
