package exchange

import (
	"encoding/json"
	"maps"
	"slices"

	"exp/eval/rows"
)

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// readLighteval reads a row of lighteval's details. Earlier versions put underscores around column names.
func readLighteval(r rows.Row, f *File) error {
	doc, answer, metric := "doc", "model_response", "metric"
	if !r.Has(doc) {
		doc, answer, metric = "__doc__", "__model_response__", "__metric__"
	}
	texts, err := r.Texts(answer + ".text")
	if err != nil {
		return err
	}
	base := Response{Where: r.Where}
	if r.Has(doc + ".query") {
		if base.Prompt, err = r.Text(doc + ".query"); err != nil {
			return err
		}
	}
	if r.Has(doc + ".id") {
		if base.Item, err = r.Text(doc + ".id"); err != nil {
			return err
		}
	}
	if base.Golds, err = lightevalGolds(r, doc); err != nil {
		return err
	}
	if v, _ := r.Value(metric); v != nil && len(texts) == 1 {
		base.Scores = numbers(v)
	}
	for _, text := range texts {
		next := base
		next.Text = text
		f.Responses = append(f.Responses, next)
	}
	return nil
}

// lightevalGolds returns the choices that gold_index, a number or list, points to.
func lightevalGolds(r rows.Row, doc string) ([]string, error) {
	if !r.Has(doc + ".choices") {
		return nil, nil
	}
	choices, err := r.Texts(doc + ".choices")
	if err != nil {
		return nil, err
	}
	v, _ := r.Value(doc + ".gold_index")
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var golds []string
	for _, x := range list {
		number, ok := x.(json.Number)
		if !ok {
			return nil, r.Errorf(doc+".gold_index", "not a number")
		}
		i, err := number.Int64()
		if err != nil || i < 0 || int(i) >= len(choices) {
			return nil, r.Errorf(doc+".gold_index", "%s, of %d choices", number, len(choices))
		}
		golds = append(golds, choices[i])
	}
	return golds, nil
}

// numbers collects the numbers and bools of an object.
func numbers(v any) map[string]float64 {
	fields, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	scores := map[string]float64{}
	r := rows.Row{Fields: fields}
	for name := range fields {
		if x, err := r.Number(name); err == nil {
			scores[name] = x
		}
	}
	return scores
}
