package exchange

import (
	"exp/eval/layout"
	"exp/eval/rows"
	"exp/train/rollout"
)

// readGenerations reads verl data with a column of responses.
func readGenerations(r rows.Row, f *File) error {
	texts, err := r.Texts("responses")
	if err != nil {
		return err
	}
	l := layout.Known()[0]
	p, err := l.Parse(r)
	if err != nil {
		return err
	}
	facts, err := layout.FactsOf(&p)
	if err != nil {
		return err
	}
	id := p.ID
	if !r.Has(l.ID) {
		id = ""
	} else if facts.Source != "" {
		id = facts.Source + "/" + id // indices restart in each source
	}
	for _, text := range texts {
		f.Responses = append(f.Responses, Response{Item: id, Text: text, Prompt: p.Prompt,
			Golds: append([]string{p.Answer}, facts.Answers...), Source: facts.Source, Where: r.Where})
	}
	return nil
}

// readDump reads a line of a rollout or validation dump: one response. Every other number or bool except
// the step is a verdict.
func readDump(r rows.Row, f *File) error {
	text, err := r.Text("output")
	if err != nil {
		return err
	}
	prompt, err := r.Text("input")
	if err != nil {
		return err
	}
	out := Response{Text: text, Prompt: prompt, Where: r.Where, Scores: numbers(r.Fields), Finish: finish(r)}
	for _, name := range []string{"step", "sample_index", "n_tokens"} {
		delete(out.Scores, name)
	}
	if r.Has("gts") {
		if out.Golds, err = r.Texts("gts"); err != nil {
			return err
		}
	}
	for to, field := range map[*string]string{&out.Item: "uid", &out.Source: "data_source"} {
		if r.Has(field) {
			if *to, err = r.Text(field); err != nil {
				return err
			}
		}
	}
	f.Responses = append(f.Responses, out)
	return nil
}

// finish reads why a response ended, if the row says.
func finish(r rows.Row) rollout.Finish {
	for _, field := range []string{"finish_reason", "finish"} {
		switch v, _ := r.Value(field); v {
		case "length":
			return rollout.FinishLength
		case "stop":
			return rollout.FinishStop
		}
	}
	return 0
}
