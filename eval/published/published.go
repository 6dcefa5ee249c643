// Package published has scores that papers publish for the benchmarks of package
// eval/suite, as facts to set ours beside. They are those of the papers' own protocols
// and graders (eval.Protocols): a difference to ours is of the method only where these
// are the same.
package published

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Reference is the scores of one paper.
type Reference struct {
	Name   string  `json:"name"`
	Source string  `json:"source"`
	Tables []Table `json:"tables"`
}

// Table is one table of a paper: rows of scores on the same suites.
type Table struct {
	Name     string   `json:"name"` // its number, with what tells its parts apart
	About    string   `json:"about"`
	Metric   string   `json:"metric"`   // "avg@16"
	Protocol string   `json:"protocol"` // of eval.Protocols
	Suites   []string `json:"suites"`   // of the catalog of eval/suite
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

// References lists what there is.
func References() []Reference {
	var r Reference
	if err := json.Unmarshal(flowrl, &r); err != nil {
		panic("published: " + err.Error())
	}
	return []Reference{r}
}

// ByName finds a reference; ok is false if there is none.
func ByName(name string) (r Reference, ok bool) {
	list := References()
	i := slices.IndexFunc(list, func(r Reference) bool { return r.Name == name })
	if i < 0 {
		return r, false
	}
	return list[i], true
}

// Scores are the entries on a suite, in the order of the tables.
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

// Off is by how much the mean that a row prints is not that of its values, which are
// rounded or cut themselves.
func (r Row) Off() float64 {
	var sum float64
	for _, v := range r.Values {
		sum += v
	}
	return math.Abs(sum/float64(len(r.Values)) - r.Mean)
}
