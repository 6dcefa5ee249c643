package published

import (
	"slices"
	"strings"
	"testing"

	"exp/eval"
	"exp/eval/suite"
)

// The mean of every published row can be recomputed from its entries, to the hundredth that the tables
// print (truncated, not rounded).
func TestMeans(t *testing.T) {
	rows := 0
	for _, r := range References() {
		for _, table := range r.Tables {
			for _, row := range table.Rows {
				rows++
				if len(row.Values) != len(table.Suites) {
					t.Fatalf("table %s, %s: %d values for %d suites", table.Name, row.Name, len(row.Values), len(table.Suites))
				}
				if off := row.Off(); off > 0.0101 {
					t.Errorf("table %s, %s: the mean is printed as %v, off by %.4f", table.Name, row.Name, row.Mean, off)
				}
			}
		}
	}
	if rows != 27 {
		t.Errorf("%d rows", rows)
	}
}

// Suites and protocols are known to this program.
func TestNames(t *testing.T) {
	for _, r := range References() {
		for _, table := range r.Tables {
			if _, err := eval.ProtocolByName(table.Protocol); err != nil {
				t.Errorf("table %s: %v", table.Name, err)
			}
			for _, s := range table.Suites {
				if _, ok := suite.ByName(s); !ok {
					t.Errorf("table %s: no suite %s", table.Name, s)
				}
			}
		}
	}
}

func TestScores(t *testing.T) {
	r, ok := ByName("flowrl_v3")
	if _, none := ByName("flowrl"); !ok || none {
		t.Fatal("names")
	}
	list, err := r.Scores("math500")
	if err != nil || len(list) != 27 {
		t.Fatalf("%d scores, %v", len(list), err)
	}
	i := slices.IndexFunc(list, func(s Score) bool { return s.Table == "table 1-7b" && s.Row == "FlowRL" })
	if i < 0 || list[i].Value != 0.6696 || list[i].Metric != "avg@16" || list[i].Protocol != "flowrl-math-paper" {
		t.Errorf("%d %+v", i, list)
	}
	if _, err := r.Scores("gsm8k"); err == nil || !strings.Contains(err.Error(), "aime24") {
		t.Error(err)
	}
}
