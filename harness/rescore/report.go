package rescore

import (
	"cmp"
	"maps"
	"slices"

	"exp/eval"
	"exp/experiments/recorded"
	"exp/sandbox"
)

// Report is the result of scoring a file, in the schema exp.eval/1.
type Report struct {
	File          string         `json:"file"`
	Format        string         `json:"format"`
	Suite         *Suite         `json:"suite"` // null: the problems come from the file
	Digest        string         `json:"problems_digest"`
	Protocol      *eval.Protocol `json:"protocol"`
	Problems      int            `json:"problems"`
	Missing       int            `json:"problems_without_responses"`
	Samples       int            `json:"samples"`
	Least         int            `json:"samples_per_problem_min"`
	Most          int            `json:"samples_per_problem_max"`
	Graders       []Grader       `json:"graders"`
	Disagreements int            `json:"disagreements"` // samples that some graders accept and others do not
	Forms         []Form         `json:"forms"`
	Ends          []End          `json:"ends,omitempty"` // how programs ended
	Published     []Published    `json:"published,omitempty"`
}

// Suite is where the problems come from.
type Suite struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	License string `json:"license"`
}

// Grader holds the results of one grader.
type Grader struct {
	Name    string   `json:"name"`
	Metrics []Metric `json:"metrics"`
}

// Metric is a score with its interval.
type Metric struct {
	Name     string   `json:"name"`
	Value    float64  `json:"value"`
	SE       *float64 `json:"se"`
	Lo       *float64 `json:"lo"` // 95 %
	Hi       *float64 `json:"hi"`
	Interval string   `json:"interval,omitempty"` // how it was computed
	Problems int      `json:"problems"`
	Clusters int      `json:"clusters"`
	Ties     *float64 `json:"ties,omitempty"` // for maj@k: share of votes that were a tie
}

// Form is a way of writing an answer, and what each grader accepts of it.
type Form struct {
	Form    string             `json:"form"`
	Samples int                `json:"samples"`
	Share   float64            `json:"share"`
	Correct map[string]int     `json:"correct"`  // by grader
	Rate    map[string]float64 `json:"accuracy"` // correct share of the samples of this form
}

// End is a verdict on programs, and how many got it from each grader.
type End struct {
	Verdict sandbox.Verdict `json:"verdict"`
	Samples map[string]int  `json:"samples"` // by grader
}

// Published is a published score.
type Published struct {
	Task   string   `json:"task"`
	Metric string   `json:"metric"`
	Value  float64  `json:"value"`
	StdErr *float64 `json:"stderr"`
}

// Report returns the results, after Grade.
func (e *Evaluation) Report() *Report {
	d := &Report{File: e.o.File.Path, Format: e.o.File.Format, Digest: e.digest.String(), Protocol: e.o.Protocol,
		Problems: len(e.panel.Problems), Missing: e.missing, Samples: len(e.panel.Samples), Least: e.least,
		Most: e.most, Disagreements: e.panel.Disagreements()}
	if s := e.o.Suite; s != nil {
		d.Suite = &Suite{s.Name, s.Version, s.License}
	}
	for _, s := range e.scores {
		g := Grader{Name: s.Grader}
		for _, m := range s.Metrics {
			g.Metrics = append(g.Metrics, metricOf(m))
		}
		for _, v := range s.Votes {
			m := metricOf(v.Metric)
			m.Ties = &v.Ties
			g.Metrics = append(g.Metrics, m)
		}
		d.Graders = append(d.Graders, g)
	}
	for _, f := range e.forms {
		form := Form{Form: string(f.Form), Samples: f.Samples, Share: float64(f.Samples) / float64(d.Samples),
			Correct: map[string]int{}, Rate: map[string]float64{}}
		for k, c := range e.panel.Columns {
			form.Correct[c.Grader] = f.Correct[k]
			form.Rate[c.Grader] = float64(f.Correct[k]) / float64(f.Samples)
		}
		d.Forms = append(d.Forms, form)
	}
	d.Ends = e.endsReport()
	for _, r := range e.o.Published {
		d.Published = append(d.Published, Published{r.Task, r.Metric, r.Value, r.StdErr})
	}
	return d
}

func metricOf(m eval.Metric) Metric {
	d := Metric{Name: m.Name, Value: m.Value, SE: m.SE, Problems: m.N, Clusters: m.Clusters}
	if m.Interval != nil && recorded.HasWidth(m.Interval.Lo, m.Interval.Hi) {
		d.Lo, d.Hi, d.Interval = &m.Interval.Lo, &m.Interval.Hi, m.Interval.Method
	}
	return d
}

// endsReport lists how programs ended, the most frequent first.
func (e *Evaluation) endsReport() (list []End) {
	all := map[sandbox.Verdict]int{}
	for _, counts := range e.ends {
		for v, n := range counts {
			all[v] = max(all[v], n)
		}
	}
	order := slices.SortedFunc(maps.Keys(all), func(a, b sandbox.Verdict) int {
		return cmp.Or(all[b]-all[a], cmp.Compare(a, b))
	})
	for _, v := range order {
		end := End{v, map[string]int{}}
		for i, counts := range e.ends {
			end.Samples[e.panel.Columns[i].Grader] = counts[v]
		}
		list = append(list, end)
	}
	return list
}
