package reports

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"exp/experiments/store"
	"exp/reports/figure"
)

// gradedArm has one run with these metrics of the suite sums.
func gradedArm(name string, metrics ...string) *arm {
	r := &run{}
	for _, m := range metrics {
		r.evals = append(r.evals, store.Eval{SuiteName: "sums", Metric: m})
	}
	return &arm{Name: name, Runs: []*run{r}}
}

// Two figures show what graders accept and how answers are written; a form that an arm
// never used is a bar of nothing.
func TestGraderFigures(t *testing.T) {
	s := &source{arms: []*arm{
		gradedArm("plain", "pass@1", "accuracy/exp", "accuracy/math_dapo", "accuracy/union", "form/plain", "form/box"),
		gradedArm("boxed", "pass@1", "accuracy/exp", "accuracy/math_dapo", "accuracy/union", "form/box"),
	}}
	values := map[string][]float64{"accuracy/exp": {0.5, 0.25}, "accuracy/math_dapo": {0.75, 0}, "accuracy/union": {0.875, 0.25},
		"form/plain": {0.625, math.NaN()}, "form/box": {0.375, 1}}
	suite := scoredSuite{name: "sums", interval: "none", metric: func(name string) (list []figure.Estimate) {
		for _, v := range values[name] {
			list = append(list, figure.Point(v))
		}
		return list
	}}
	list := s.graderFigures(suite)
	if len(list) != 2 {
		t.Fatalf("%d figures", len(list))
	}
	for i, want := range []struct {
		name   string
		groups []string
		values [][]float64 // [arms][groups]
	}{
		{"graders-sums", []string{"exp", "math_dapo", "union"}, [][]float64{{0.5, 0.75, 0.875}, {0.25, 0, 0.25}}},
		{"forms-sums", []string{"plain", "box"}, [][]float64{{0.625, 0.375}, {0, 1}}},
	} {
		f, err := list[i].draw()
		if err != nil || f.Name != want.name {
			t.Fatalf("%s: %v, want %s", f.Name, err, want.name)
		}
		raw, err := json.Marshal(f.Data)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Groups []string
			Arms   []struct {
				Name   string
				Values []struct{ Value float64 }
			}
		}
		if err := json.Unmarshal(raw, &got); err != nil || strings.Join(got.Groups, " ") != strings.Join(want.groups, " ") || len(got.Arms) != 2 {
			t.Fatalf("%s: %v\n%s", want.name, err, raw)
		}
		for a, arm := range got.Arms {
			for g, v := range arm.Values {
				if v.Value != want.values[a][g] {
					t.Errorf("%s, %s, %s: %v, want %v", want.name, arm.Name, got.Groups[g], v.Value, want.values[a][g])
				}
			}
		}
	}
	s.arms = []*arm{gradedArm("one grader", "pass@1")}
	if list := s.graderFigures(suite); list != nil {
		t.Errorf("%d figures of one grader", len(list))
	}
}
