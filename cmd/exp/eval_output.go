package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"exp/eval"
	"exp/eval/exchange"
	"exp/harness/fault"
	"exp/train/rollout"
)

// evalData is exp.eval/1.
type evalData struct {
	File          string          `json:"file"`
	Format        string          `json:"format"`
	Suite         *evalSuiteData  `json:"suite"` // null: the problems are those of the file
	Digest        string          `json:"problems_digest"`
	Protocol      *eval.Protocol  `json:"protocol"`
	Problems      int             `json:"problems"`
	Missing       int             `json:"problems_without_responses"`
	Samples       int             `json:"samples"`
	Least         int             `json:"samples_per_problem_min"`
	Most          int             `json:"samples_per_problem_max"`
	Graders       []evalGrader    `json:"graders"`
	Disagreements int             `json:"disagreements"` // samples that some graders accept and others do not
	Forms         []evalForm      `json:"forms"`
	Ends          []evalEnd       `json:"ends,omitempty"` // how programs ended
	Published     []evalPublished `json:"published,omitempty"`
}

type evalSuiteData struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	License string `json:"license"`
}

type evalGrader struct {
	Name    string       `json:"name"`
	Metrics []evalMetric `json:"metrics"`
}

type evalMetric struct {
	Name     string   `json:"name"`
	Value    float64  `json:"value"`
	SE       *float64 `json:"se"`
	Lo       *float64 `json:"lo"` // 95 %
	Hi       *float64 `json:"hi"`
	Interval string   `json:"interval,omitempty"` // how it was made
	Problems int      `json:"problems"`
	Clusters int      `json:"clusters"`
	Ties     *float64 `json:"ties,omitempty"` // of maj@k: share of votes that were a tie
}

type evalForm struct {
	Form    string             `json:"form"`
	Samples int                `json:"samples"`
	Share   float64            `json:"share"`
	Correct map[string]int     `json:"correct"`  // by grader
	Rate    map[string]float64 `json:"accuracy"` // correct of the samples of this form
}

type evalPublished struct {
	Task   string   `json:"task"`
	Metric string   `json:"metric"`
	Value  float64  `json:"value"`
	StdErr *float64 `json:"stderr"`
}

func metricData(m eval.Metric) evalMetric {
	d := evalMetric{Name: m.Name, Value: m.Value, SE: m.SE, Problems: m.N, Clusters: m.Clusters}
	if m.Interval != nil {
		d.Lo, d.Hi, d.Interval = &m.Interval.Lo, &m.Interval.Hi, m.Interval.Method
	}
	return d
}

func (e *evaluation) data() evalData {
	d := evalData{File: e.file.Path, Format: e.file.Format, Digest: e.digest.String(), Protocol: e.protocol, Problems: len(e.panel.Problems), Missing: e.missing,
		Samples: len(e.panel.Samples), Least: e.least, Most: e.most, Disagreements: e.panel.Disagreements()}
	if e.suite != nil {
		d.Suite = &evalSuiteData{e.suite.Name, e.suite.Version, e.suite.License}
	}
	for _, s := range e.scores {
		g := evalGrader{Name: s.Grader}
		for _, m := range s.Metrics {
			g.Metrics = append(g.Metrics, metricData(m))
		}
		for _, v := range s.Votes {
			m := metricData(v.Metric)
			m.Ties = &v.Ties
			g.Metrics = append(g.Metrics, m)
		}
		d.Graders = append(d.Graders, g)
	}
	for _, f := range e.forms {
		form := evalForm{string(f.Form), f.Samples, float64(f.Samples) / float64(d.Samples), map[string]int{}, map[string]float64{}}
		for k, c := range e.panel.Columns {
			form.Correct[c.Grader] = f.Correct[k]
			form.Rate[c.Grader] = float64(f.Correct[k]) / float64(f.Samples)
		}
		d.Forms = append(d.Forms, form)
	}
	d.Ends = e.endsData()
	for _, r := range e.results {
		d.Published = append(d.Published, evalPublished{r.Task, r.Metric, r.Value, r.StdErr})
	}
	return d
}

// human prints the scores, then why they differ.
func (e *evaluation) human(a *app, w io.Writer) error {
	d := e.data()
	from := "gold answers of the file"
	if d.Suite != nil {
		from = strings.TrimSpace("suite " + d.Suite.Name + " " + d.Suite.Version)
	}
	per := fmt.Sprint(d.Most)
	if d.Least != d.Most {
		per = fmt.Sprintf("%d to %d", d.Least, d.Most)
	}
	fmt.Fprintf(w, "%s  %s  %s\n%d problems, %d responses, %s each; problems %s\n", d.File, d.Format, from, d.Problems-d.Missing, d.Samples, per, d.Digest[:8])
	if d.Missing > 0 {
		fmt.Fprintf(w, "partial: %d of %d problems have no response and do not count\n", d.Missing, d.Problems)
	}
	if p := d.Protocol; p != nil {
		fmt.Fprintf(w, "protocol %s: %s; %s\n", p.Name, p.Settings(), p.Prompt)
	}
	fmt.Fprintln(w)
	if err := a.out.printAligned(scoreTable(d)); err != nil {
		return err
	}
	if len(d.Ends) > 0 {
		fmt.Fprintf(w, "\nHow the programs ended; the graders disagree on %d of %d.\n", d.Disagreements, d.Samples)
		return a.out.printAligned(endsTable(d))
	}
	fmt.Fprintf(w, "\nHow the answers are written, and the share of each form that a grader accepts; they disagree on %d of %d.\n", d.Disagreements, d.Samples)
	if err := a.out.printAligned(formTable(d)); err != nil {
		return err
	}
	if len(d.Published) > 0 {
		fmt.Fprintln(w, "\nPublished:")
		t := table{Columns: []column{{Key: "task"}, {Key: "metric"}, {Key: "value", Digits: 4}, {Key: "stderr", Digits: 4}}}
		for _, r := range d.Published {
			var se any
			if r.StdErr != nil {
				se = *r.StdErr
			}
			t.Rows = append(t.Rows, []any{r.Task, r.Metric, r.Value, se})
		}
		return a.out.printAligned(t)
	}
	return nil
}

// scoreTable has a row a grader: avg@n with its interval, then the other metrics.
func scoreTable(d evalData) table {
	t := table{Columns: []column{{Key: "grader"}}}
	at := map[string]int{} // column by metric: not every grader has each
	for _, g := range d.Graders {
		for _, m := range g.Metrics {
			if at[m.Name] > 0 {
				continue
			}
			at[m.Name] = len(t.Columns)
			name := m.Name
			if name == "pass@1" && d.Most > 1 {
				name = fmt.Sprintf("avg@%d", d.Most)
			}
			t.Columns = append(t.Columns, column{Key: name})
		}
	}
	for _, g := range d.Graders {
		row := make([]any, len(t.Columns))
		row[0] = g.Name
		for _, m := range g.Metrics {
			row[at[m.Name]] = withInterval(m)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// withInterval is "0.641 [0.600, 0.682]".
func withInterval(m evalMetric) string {
	s := fmt.Sprintf("%.3f", m.Value)
	if m.Lo != nil {
		s += fmt.Sprintf(" [%.3f, %.3f]", *m.Lo, *m.Hi)
	}
	return s
}

func formTable(d evalData) table {
	t := table{Columns: []column{{Key: "form"}, {Key: "responses"}, {Key: "share", Digits: 3}}}
	for _, g := range d.Graders {
		t.Columns = append(t.Columns, column{Key: g.Name, Title: g.Name, Digits: 3})
	}
	for _, f := range d.Forms {
		row := []any{f.Form, f.Samples, f.Share}
		for _, g := range d.Graders {
			row = append(row, f.Rate[g.Name])
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// writeVerdicts writes a row a response: the problem, which of its responses, the form,
// and what each grader says.
func (e *evaluation) writeVerdicts(w io.Writer) error {
	type verdict struct {
		Grader  string `json:"grader"`
		Correct *bool  `json:"correct"` // null: not graded
		Answer  string `json:"answer"`
		Reason  string `json:"reason"`
	}
	type row struct {
		ID       string    `json:"id"`
		Sample   int       `json:"sample"`
		Form     string    `json:"form"`
		Verdicts []verdict `json:"verdicts"`
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i, s := range e.panel.Samples {
		r := row{ID: s.ProblemID, Sample: s.K, Form: e.formOf[i]}
		for _, c := range e.panel.Columns {
			v := verdict{Grader: c.Grader, Answer: c.Verdicts[i].Answer, Reason: c.Verdicts[i].Reason}
			if c.Verdicts[i].Status != 0 {
				v.Correct = &c.Verdicts[i].Correct
			}
			r.Verdicts = append(r.Verdicts, v)
		}
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// export writes FORM=FILE.
func (e *evaluation) export(to string) error {
	form, path, ok := strings.Cut(to, "=")
	if !ok || path == "" {
		return usagef("--write %s: FORM=FILE is needed", to)
	}
	if form == harnessResults {
		return replaceFile(path, func(w io.Writer) error { return exchange.WriteResults(w, e.file.Path, e.asResults()) })
	}
	if !slices.Contains(exchange.WriteFormats(), form) {
		return usagef("--write: no form %q; there are %s", form, strings.Join(append(exchange.WriteFormats(), harnessResults), ", "))
	}
	scores := make([]map[string]float64, len(e.panel.Samples))
	for i := range scores {
		scores[i] = map[string]float64{}
		v := e.panel.Columns[0].Verdicts[i]
		x := 0.0
		if v.Correct {
			x = 1
		}
		for _, name := range verdictNames(form, e.panel.Columns[0].Grader) {
			scores[i][name] = x
		}
	}
	problems := map[string]*rollout.Problem{}
	for i := range e.panel.Problems {
		problems[e.panel.Problems[i].ID] = &e.panel.Problems[i]
	}
	out := e.file.WithScores(scores)
	for i := range out.Responses {
		r := &out.Responses[i]
		p := problems[r.Item]
		if len(r.Golds) == 0 && p.Answer != "" {
			r.Golds = []string{p.Answer}
		}
		r.Prompt = or(r.Prompt, p.Prompt)
	}
	err := replaceFile(path, func(w io.Writer) error { return out.Write(w, form) })
	if fault.IsBadFile(err) {
		return failf(exitUsage, "--write %s: %w", form, err)
	}
	return err
}

// verdictNames are the fields in which a form keeps a verdict.
func verdictNames(form, grader string) []string {
	switch form {
	case "verl-dump":
		return []string{"score", "acc"}
	case "humaneval":
		return []string{"passed"}
	case "evalplus":
		return []string{"base"}
	case "lcb", "lcb-custom":
		return []string{"graded"}
	}
	return []string{grader}
}

// asResults are the scores as lm-evaluation-harness names them: metric and grader.
func (e *evaluation) asResults() []exchange.Result {
	task := "responses"
	if e.suite != nil {
		task = e.suite.Name
	}
	var list []exchange.Result
	for _, s := range e.scores {
		for _, m := range s.Metrics {
			list = append(list, exchange.Result{Task: task, Metric: m.Name + "," + s.Grader, Value: m.Value, StdErr: m.SE, Items: m.N})
		}
	}
	return list
}
