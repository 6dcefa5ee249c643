package main

import (
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/lineage"
)

// lineage shows what each stage read and wrote, who made it and who used it.
func (p *showPage) lineage() error {
	p.Heading("lineage")
	if !p.s.Parent.IsZero() {
		p.Line("continues run %s", p.s.Parent.Short())
	}
	var rows [][]any
	last := ""
	for _, e := range p.s.Lineage {
		name := e.Stage
		if name == last {
			name = ""
		}
		last = e.Stage
		made := e.MadeBy.String()
		switch {
		case made == "":
			made = "outside"
		case e.Way == lineage.Out && e.MadeBy.Run == p.s.Run:
			made = ""
		}
		var used []string
		for _, id := range e.UsedBy {
			used = append(used, id.String())
		}
		rows = append(rows, []any{name, string(e.Way), e.Role, e.Digest.Short(), made, usedByText(used)})
	}
	return p.Table([]cli.Column{{Title: "stage"}, {Title: "dir"}, {Title: "role"}, {Title: "digest"},
		{Title: "made by"}, {Title: "used by runs", Rank: 1}}, rows)
}

// usedByText names up to three runs and counts the others.
func usedByText(list []string) string {
	const most = 3
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return strings.Join(list[:most], ", ") + " and " + cli.MachineText(int64(len(list)-most)) + " more"
}
