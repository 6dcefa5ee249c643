package exchange

import (
	"exp/eval/rows"
)

// readOurs reads rows that are easy to write by hand: id; the gold answer as gold or answer; response or
// responses.
func readOurs(r rows.Row, f *File) error {
	field := "responses"
	if r.Has("response") {
		field = "response"
	}
	texts, err := r.Texts(field)
	if err != nil {
		return err
	}
	base := Response{Where: r.Where, Finish: finish(r)}
	for _, name := range []string{"gold", "golds", "answer"} {
		if base.Golds == nil && r.Has(name) {
			if base.Golds, err = r.Texts(name); err != nil {
				return err
			}
		}
	}
	for _, x := range []struct {
		to     *string
		fields []string
	}{{&base.Item, []string{"id"}}, {&base.Prompt, []string{"problem", "question", "prompt"}},
		{&base.Source, []string{"source", "data_source"}}} {
		for _, name := range x.fields {
			if *x.to == "" && r.Has(name) {
				if *x.to, err = r.Text(name); err != nil {
					return err
				}
			}
		}
	}
	if v, ok := r.Value("scores"); ok && len(texts) == 1 {
		base.Scores = numbers(v)
	}
	for _, text := range texts {
		next := base
		next.Text = text
		f.Responses = append(f.Responses, next)
	}
	return nil
}

// readSamples reads the output of exp samples -o jsonl.
func readSamples(r rows.Row, f *File) error {
	id, err := r.Text("item")
	if err != nil {
		return err
	}
	text, err := r.Text("completion")
	if err != nil {
		return err
	}
	out := Response{Item: id, Text: text, Finish: finish(r), Where: r.Where}
	if p, ok := r.Value("prompt"); ok {
		out.Prompt, _ = p.(string)
	}
	switch v, _ := r.Value("verdict"); v {
	case "right":
		out.Scores = map[string]float64{"verdict": 1}
	case "wrong":
		out.Scores = map[string]float64{"verdict": 0}
	}
	f.Responses = append(f.Responses, out)
	return nil
}
