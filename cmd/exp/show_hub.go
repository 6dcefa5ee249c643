package main

import (
	"fmt"

	"exp/cmd/exp/cli"
	"exp/experiments/quantity"
	"exp/harness/hub"
)

// shownFiles is how many files of a repository the page shows; -o wide and --json have all.
const shownFiles = 12

// hub shows where the models and the data came from on a hub.
func (p *showPage) hub() error {
	for _, from := range p.from {
		p.Heading(from.Key + " from the hub")
		p.Facts(
			cli.Fact{Name: "repository", Text: hub.Repo{Kind: from.Kind, Name: from.Repo}.String()},
			cli.Fact{Name: "revision", Text: from.Revision},
			cli.Fact{Name: "commit", Text: from.Commit},
			cli.Fact{Name: "endpoint", Text: from.Endpoint},
		)
		files, left := from.Files, 0
		if most := shownFiles; p.Out.Format != cli.FormatWide && len(files) > most {
			files, left = files[:most], len(files)-most
		}
		var rows [][]any
		for _, f := range files {
			rows = append(rows, []any{f.Path, quantity.Bytes(f.Bytes), p.digest(f.SHA256)})
		}
		if err := p.Table([]cli.Column{{Title: "file", Rank: 1, Min: 12}, {Title: "size"}, {Title: "sha256"}},
			rows); err != nil {
			return err
		}
		if left > 0 {
			p.Line("%s more: exp show %s -o wide", quantity.Plural(left, "file"), p.s.Run.Short())
		}
	}
	return nil
}

// digest is the beginning of a digest, as elsewhere on the page; -o wide has it whole.
func (p *showPage) digest(hex string) string {
	const digits = 8
	if p.Out.Format == cli.FormatWide {
		return hex
	}
	return fmt.Sprintf("%.*s", digits, hex)
}
