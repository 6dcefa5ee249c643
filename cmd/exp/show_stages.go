package main

import (
	"fmt"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/experiments/recorded"
	"exp/experiments/store"
)

// stages is one row a stage: what it cost and what it made.
func (p *showPage) stages() error {
	if len(p.s.Stages) == 0 {
		return nil
	}
	p.Heading("stages")
	columns := []cli.Column{{Title: "stage"}, {Title: "status", Style: stageStyle}, {Title: "time"},
		{Title: "outputs", Rank: 1, Min: 20}}
	var rows [][]any
	for i := range p.s.Stages {
		st := &p.s.Stages[i]
		var wall any
		if st.Status == store.Done || st.WallS > 0 {
			wall = quantity.Seconds(st.WallS)
		}
		rows = append(rows, []any{st.Name(), p.stageStatus(st), wall, outputsText(st)})
	}
	if err := p.Table(columns, rows); err != nil {
		return err
	}
	for i := range p.s.Stages {
		st := &p.s.Stages[i]
		if st.Error != "" {
			p.Text("  ", "error in "+st.Name()+": "+st.Error)
		}
	}
	return nil
}

func (p *showPage) stageStatus(st *recorded.Stage) string {
	if st.Status == store.Cached && st.From != p.s.Run {
		return "cached from " + st.From.Short()
	}
	return string(st.Status)
}

func stageStyle(v any) term.Style {
	text, _ := v.(string)
	switch {
	case strings.HasPrefix(text, "cached"), text == string(store.Repeated):
		return term.Faint
	}
	return statusStyle(v)
}

// outputsText lists the outputs of a stage; of a folder of files their number.
func outputsText(st *recorded.Stage) string {
	const most = 4
	if len(st.Outputs) > most {
		var bytes int64
		for _, o := range st.Outputs {
			bytes += o.Size
		}
		return fmt.Sprintf("%d files, %s", len(st.Outputs), quantity.Bytes(bytes))
	}
	var parts []string
	for _, o := range st.Outputs {
		parts = append(parts, fmt.Sprintf("%s %s", strings.TrimPrefix(o.Role, "problems/"), quantity.Bytes(o.Size)))
	}
	return strings.Join(parts, ", ")
}

// stagesWide is all that is known of the stages.
func (p *showPage) stagesWide() error {
	for i := range p.s.Stages {
		st := &p.s.Stages[i]
		p.Heading(st.Name())
		p.Facts(
			cli.Fact{Name: "status", Text: p.stageStatus(st)},
			cli.Fact{Name: "sid", Text: st.SID.Short() + "  code " + st.Code.Short()},
			cli.Fact{Name: "started", Text: p.Out.LocalTime(st.Started)},
			cli.Fact{Name: "cost", Text: costText(st)},
			cli.Fact{Name: "error", Text: st.Error},
		)
		columns := []cli.Column{{Title: "dir"}, {Title: "role"}, {Title: "digest"}, {Title: "size"}}
		var rows [][]any
		for _, o := range st.Inputs {
			rows = append(rows, []any{"in", o.Role, o.Digest.Short(), nil})
		}
		for _, o := range st.Outputs {
			rows = append(rows, []any{"out", o.Role, o.Digest.Short(), quantity.Bytes(o.Size)})
		}
		if len(rows) == 0 {
			continue
		}
		if err := p.Table(columns, rows); err != nil {
			return err
		}
	}
	return nil
}

func costText(st *recorded.Stage) string {
	if st.WallS == 0 {
		return ""
	}
	text := quantity.Duration(quantity.Seconds(st.WallS))
	if st.CPUS > 0 {
		text += ", " + quantity.Duration(quantity.Seconds(st.CPUS)) + " of CPU"
	}
	if st.PeakMem > 0 {
		text += ", at most " + quantity.Bytes(st.PeakMem) + " of memory"
	}
	return text
}
