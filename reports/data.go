package reports

import (
	"encoding/json"

	"exp/experiments/store"
	"exp/reports/compare"
)

const dataSchema = "exp.report/1"

// data is data.json: every number shown in the report.
type data struct {
	Schema       string          `json:"schema"`
	Title        string          `json:"title"`
	Arms         []dataArm       `json:"arms"`
	Comparison   *compare.Result `json:"comparison"` // null: one arm
	Figures      []dataFigure    `json:"figures"`
	Omitted      []omitted       `json:"omitted"`
	Costs        [][]stageCost   `json:"stages"` // [stages][arms]
	Samples      []problem       `json:"samples"`
	Environments []environment   `json:"environments"`
}

type dataArm struct {
	Name   string            `json:"name"`
	Config map[string]string `json:"config"` // of the lowest seed, by path
	Runs   []dataRun         `json:"runs"`
}

type dataRun struct {
	RID      string            `json:"run"`
	XID      string            `json:"experiment"`
	Name     string            `json:"name"`
	Algo     string            `json:"algo"`
	Task     string            `json:"task"`
	Model    string            `json:"model"`
	Seed     int64             `json:"seed"`
	Numerics string            `json:"numerics"`
	Device   string            `json:"device"`
	Status   store.Status      `json:"status"`
	Steps    int64             `json:"steps"`
	Of       int64             `json:"steps_total"`
	Tokens   int64             `json:"tokens"`
	Chain    string            `json:"chain"`
	Warnings int               `json:"warnings"`
	Diverged int               `json:"divergences"`
	Metrics  map[string]number `json:"metrics"` // last values
	Evals    []dataEval        `json:"evals"`
}

type dataEval struct {
	Suite  string `json:"suite"`
	Metric string `json:"metric"`
	Value  number `json:"value"`
	Lo     number `json:"lo"`
	Hi     number `json:"hi"`
	N      int64  `json:"samples"`
	Items  int64  `json:"items"`
}

type dataFigure struct {
	Number  int      `json:"number"`
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	Caption string   `json:"caption"`
	Files   []string `json:"files"`
	Data    any      `json:"data"`
}

func (r *Report) data(figures []string) data {
	s := r.source
	d := data{Schema: dataSchema, Title: s.title, Comparison: s.result, Figures: []dataFigure{},
		Omitted: r.drawn.omitted, Costs: r.costs,
		Samples: []problem{}, Environments: s.environments()}
	for _, a := range s.arms {
		out := dataArm{Name: a.Name, Config: map[string]string{}, Runs: []dataRun{}}
		for path := range a.Runs[0].config {
			out.Config[path] = a.Runs[0].setting(path)
		}
		for _, run := range a.Runs {
			out.Runs = append(out.Runs, run.data())
		}
		d.Arms = append(d.Arms, out)
	}
	for _, f := range r.drawn.figures {
		out := dataFigure{Number: f.N, Name: f.Name, Title: f.Title, Caption: f.caption(), Files: []string{},
			Data: f.Data}
		for _, ext := range figures {
			out.Files = append(out.Files, f.file(ext))
		}
		d.Figures = append(d.Figures, out)
	}
	for _, sec := range r.page.Sections {
		for _, b := range sec.Blocks {
			if p, ok := b.(problem); ok {
				d.Samples = append(d.Samples, p)
			}
		}
	}
	return d
}

func (r *run) data() dataRun {
	out := dataRun{RID: r.RID.String(), XID: r.XID.String(), Name: r.Name, Algo: r.Algo, Task: r.Task, Model: r.Model,
		Seed:     r.Seed,
		Numerics: r.Numerics, Device: r.Device, Status: r.Status, Steps: r.Steps, Of: r.StepsTotal, Tokens: r.Tokens,
		Chain:    r.Chain.String(),
		Warnings: r.warnings(), Diverged: len(r.diverged), Metrics: map[string]number{}, Evals: []dataEval{}}
	for name, c := range r.curves {
		out.Metrics[name] = number(c.Last)
	}
	for _, e := range r.evals {
		out.Evals = append(out.Evals, dataEval{e.SuiteName, e.Metric, number(e.Value), number(e.Lo), number(e.Hi),
			e.N, e.Items})
	}
	return out
}

// MarshalJSON writes the problem with the arms' answers.
func (p problem) MarshalJSON() ([]byte, error) {
	type arm struct {
		Arm         string        `json:"arm"`
		Right       string        `json:"right"`
		Completions []answerGroup `json:"completions"`
		More        string        `json:"more,omitempty"`
	}
	out := struct {
		Suite   string `json:"suite"`
		Problem string `json:"problem"`
		Prompt  string `json:"prompt"`
		Arms    []arm  `json:"arms"`
	}{Problem: p.Title.String(), Prompt: p.Prompt}
	for _, a := range p.Arms {
		out.Arms = append(out.Arms, arm{a.Arm.Text, a.Right, a.Groups, a.More})
	}
	return json.Marshal(out)
}
