package cluster

import "testing"

func TestTimeLimit(t *testing.T) {
	for text, want := range map[string]int{"1": 60, "2:30": 180, "1:00:30": 3660, "1-2": 26 * 3600, "1-2:03": 26*3600 + 180,
		"0-0:0:5": 60, "": 0, "0": 0, "UNLIMITED": 0, "1:2:3:4": 0, "x-1": 0, "-1": 0} {
		if got, ok := timeLimit(text); ok != (want > 0) || ok && got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, ok, want)
		}
	}
}

// A job that Slurm warns before it can do anything is not submitted.
func TestSubmissionWarnedAtOnce(t *testing.T) {
	for _, tt := range []struct {
		time   string
		before int
		ok     bool
	}{{"2", 120, false}, {"1", 120, false}, {"3", 120, true}, {"", 120, true}, {"1", 55, true}} {
		b := Batch{Entries: []Entry{{ID: "x"}}}
		b.Options.Slurm.Time, b.Options.Slurm.SignalBefore = tt.time, tt.before
		_, err := (&Submission{Batches: []Batch{b}}).Scripts()
		if (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}
