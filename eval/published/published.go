// Package published holds scores that papers report for the benchmarks of package eval/suite, to compare
// ours with. Papers use their own protocols and graders (eval.Protocols): a difference says something about
// the method only if both are the same.
package published

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Reference holds the scores of one paper.
type Reference struct {
	Name   string  `json:"name"`
	Source string  `json:"source"`
	Tables []Table `json:"tables"`
}

// Table is one table of a paper: rows of scores on the same suites.
type Table struct {
	Name     string   `json:"name"` // its number and, where a table has parts, which part
	About    string   `json:"about"`
	Metric   string   `json:"metric"`   // "avg@16"
	Protocol string   `json:"protocol"` // a name in eval.Protocols
	Suites   []string `json:"suites"`   // names in the catalog of eval/suite
	Rows     []Row    `json:"rows"`
}

// Row is one method. Values are in percent, as printed.
type Row struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"` // [suites]
	Mean   float64   `json:"mean"`
}

// Score is one entry of a table.
type Score struct {
	Table    string // "table 1-7b"
	Row      string
	Metric   string
	Protocol string
	Value    float64 // a share, 0 to 1
}

//go:embed flowrl_v3.json
var flowrl []byte

// References lists the known references.
func References() []Reference {
	var r Reference
	if err := json.Unmarshal(flowrl, &r); err != nil {
		panic("published: " + err.Error())
	}
	return []Reference{r}
}

// ByName finds a reference; ok is false for an unknown name.
func ByName(name string) (r Reference, ok bool) {
	list := References()
	i := slices.IndexFunc(list, func(r Reference) bool { return r.Name == name })
	if i < 0 {
		return r, false
	}
	return list[i], true
}

// Scores returns the entries for a suite in table order.
func (r Reference) Scores(suite string) ([]Score, error) {
	var list []Score
	var known []string
	for _, t := range r.Tables {
		for _, s := range t.Suites {
			if !slices.Contains(known, s) {
				known = append(known, s)
			}
		}
		at := slices.Index(t.Suites, suite)
		if at < 0 {
			continue
		}
		for _, row := range t.Rows {
			list = append(list, Score{Table: "table " + t.Name, Row: row.Name, Metric: t.Metric, Protocol: t.Protocol,
				Value: row.Values[at] / 100})
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no scores on %q; it has %s", r.Source, suite, strings.Join(known, ", "))
	}
	return list, nil
}

// Off returns how far the printed mean is from the mean of the printed values, which are rounded or
// truncated themselves.
func (r Row) Off() float64 {
	var sum float64
	for _, v := range r.Values {
		sum += v
	}
	return math.Abs(sum/float64(len(r.Values)) - r.Mean)
}
