package reports

import (
	"strings"
	"testing"

	"exp/experiments/store"
)

// A curve of the distance to the reference says whose reference is a teacher.
func TestCurveNamesTeachers(t *testing.T) {
	plain, taught := &arm{label: "plain", Runs: []*run{{}}}, &arm{label: "taught", Runs: []*run{{
		stages: []store.Stage{{Kind: "train", Inputs: []store.IO{{Role: "teacher"}}}}}}}
	for _, tt := range []struct {
		metric string
		arms   []*arm
		want   string // "": no sentence
	}{
		{"kl/ref_k3", []*arm{plain, taught}, ". The reference of taught is a teacher (algo.reference or algo.teachers), otherwise it is the start"},
		{"kl/ref_k3", []*arm{taught}, ". The reference of taught is a teacher (algo.reference or algo.teachers)"},
		{"kl/ref_k3", []*arm{plain}, ""},
		{"actor/entropy", []*arm{plain, taught}, ""},
	} {
		f := curveKind{Name: "x", Metric: tt.metric}.curve(tt.arms)
		if got := strings.Contains(f.About, "teacher"); got != (tt.want != "") || !strings.HasSuffix(f.About, tt.want) {
			t.Errorf("%s of %d arms: %q", tt.metric, len(tt.arms), f.About)
		}
	}
}
