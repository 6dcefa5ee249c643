package reports

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"exp/experiments/store"
	"exp/reports/compare"
)

// selects records that a run chose kept of 10 problems by their pass rates: 4 are never solved, 6 at 0.2.
func (s *study) selects(run store.Run, kept int) {
	s.t.Helper()
	ctx := context.Background()
	st := store.Stage{SID: digestOf(fmt.Sprint("select", kept)), Run: run.ID, Kind: "select", Code: digestOf("code")}
	hit, err := s.db.Hit(ctx, st.SID)
	s.must(err)
	if hit != nil {
		_, err := s.db.ReuseStage(ctx, st, hit)
		s.must(err)
		return
	}
	st, err = s.db.BeginStage(ctx, st)
	s.must(err)
	d, err := s.db.Blobs.PutBytes([]byte(fmt.Sprint("problems ", kept, "\n")))
	s.must(err)
	result := fmt.Appendf(nil, `{"problems": 11, "kept": %d, "min": 0.1, "max": 0.8, "never": 4, "always": 0, `+
		`"unrated": 1, "mean": 0.12, "histogram": [`+
		`{"rates": "0", "problems": 4, "kept": 0}, {"rates": "0.2 to 0.3", "problems": 6, "kept": %d}, {"rates": `+
		`"1", "problems": 0, "kept": 0}]}`, kept, kept)
	s.must(s.db.FinishStage(ctx, st.ID, []store.IO{{Role: "problems/train", Digest: d, Size: 1 +
		int64(len(fmt.Sprint("problems ", kept)))}},
		store.StageResult{Result: result}, nil))
}

// passRates returns the figures of pass rates: "name: caption: kept, left out".
func (s *study) passRates(in Input) (list []string) {
	s.t.Helper()
	var d struct {
		Figures []struct {
			Name, Title, Caption string
			Data                 json.RawMessage
		}
	}
	s.must(json.Unmarshal(s.bundle(in, Formats{})["data.json"], &d))
	for _, f := range d.Figures {
		if !strings.HasPrefix(f.Name, "pass-rates") {
			continue
		}
		var bars struct {
			Groups []string
			Arms   []struct {
				Name   string
				Values []struct{ Value float64 }
			}
		}
		s.must(json.Unmarshal(f.Data, &bars))
		var arms []string
		for _, a := range bars.Arms {
			arms = append(arms, fmt.Sprint(a.Name, " ", a.Values))
		}
		list = append(list, fmt.Sprintf("%s: %s; %s; %s", f.Name, f.Title, strings.Join(bars.Groups, "|"),
			strings.Join(arms, ", ")))
		if want := "lie between 0.1 and 0.8; 4 are never solved and 0 always; the mean is 0.120; not drawn: 1 " +
			"problem without a pass rate"; !strings.Contains(f.Caption, want) {
			s.t.Errorf("caption %q lacks %q", f.Caption, want)
		}
	}
	return list
}

// Runs that share a choice of problems have one figure of it; other choices have their own, named by their arms.
func TestPassRateFigures(t *testing.T) {
	s := newStudy(t)
	in := Input{Comparison: s.comparison()}
	if got := s.passRates(in); got != nil {
		t.Errorf("without pass rates: %q", got)
	}
	for _, r := range slices.Concat(s.flowrl, s.ppo) {
		s.selects(r, 6)
	}
	const data = "0|0.2 to 0.3|1; trained on [{0} {%d} {0}], left out [{4} {%d} {0}]"
	want := []string{"pass-rates: Training problems by pass rate; " + fmt.Sprintf(data, 6, 0)}
	if got := s.passRates(in); !slices.Equal(got, want) {
		t.Errorf("shared by all: %q, want %q", got, want)
	}
	if got := s.passRates(Input{Arm: compare.Arm{Runs: s.flowrl}}); !slices.Equal(got, want) {
		t.Errorf("one arm: %q, want %q", got, want)
	}
	for _, r := range s.ppo {
		s.selects(r, 2)
	}
	want = []string{"pass-rates-1: Training problems by pass rate, flow; " + fmt.Sprintf(data, 6, 0),
		"pass-rates-2: Training problems by pass rate, ppo & co; " + fmt.Sprintf(data, 2, 4)}
	if got := s.passRates(in); !slices.Equal(got, want) {
		t.Errorf("two choices: %q, want %q", got, want)
	}
}
