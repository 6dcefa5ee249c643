package recorded

import (
	"testing"

	"exp/experiments/store"
)

// The newest training that is done says whose weights count; that of a stopped run says nothing.
func TestBestOf(t *testing.T) {
	stage := func(kind, result string) store.Stage {
		return store.Stage{Kind: kind, StageResult: store.StageResult{Result: []byte(result)}}
	}
	best := `{"steps": 6, "best": {"step": 4, "metric": "val/pass@1", "value": 0.41249}}`
	for _, tt := range []struct {
		stages []store.Stage
		want   string
	}{
		{[]store.Stage{stage("train", `{"steps": 6}`)}, "5 of 6, 1200 tokens sampled"},
		{[]store.Stage{stage("train", ""), stage("train", best), stage("merge", `{"best": {"step": 3}}`)},
			"5 of 6, 1200 tokens sampled; weights of step 4 (val/pass@1 0.412)"},
		{[]store.Stage{stage("train", best), stage("train", "")},
			"5 of 6, 1200 tokens sampled; weights of step 4 (val/pass@1 0.412)"},
	} {
		r := Run{Steps: 5, StepsTotal: 6, Tokens: 1200}
		if b, ok := BestOf(tt.stages); ok {
			r.Best = &b
		}
		if got := r.StepsText(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
