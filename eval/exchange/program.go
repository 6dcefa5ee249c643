package exchange

import (
	"exp/eval/rows"
	"exp/eval/stat"
)

// readHumanEval reads a line of samples or results: solution, a whole program, or else completion, which
// continues the prompt.
func readHumanEval(r rows.Row, f *File) error {
	id, err := r.Text("task_id")
	if err != nil {
		return err
	}
	field := "completion"
	if r.Has("solution") {
		field = "solution"
	}
	text, err := r.Text(field)
	if err != nil {
		return err
	}
	out := Response{Item: id, Text: text, Where: r.Where}
	if r.Has("passed") {
		x, err := r.Number("passed")
		if err != nil {
			return err
		}
		out.Scores = map[string]float64{"passed": x}
	}
	f.Responses = append(f.Responses, out)
	return nil
}

// readEvalPlus reads EvalPlus results, one object for all tasks. A response passes "plus" only if it also
// passes the base tests.
func readEvalPlus(r rows.Row, f *File) error {
	v, _ := r.Value("eval")
	tasks, ok := v.(map[string]any)
	if !ok {
		return r.Errorf("eval", "not an object of tasks")
	}
	whole := rows.Row{Path: r.Path, Where: r.Where, Fields: tasks}
	for _, task := range sortedKeys(tasks) {
		list, err := whole.Objects(task)
		if err != nil {
			return err
		}
		for _, x := range list {
			text, err := x.Text("solution")
			if err != nil {
				return err
			}
			base, err := x.Text("base_status")
			if err != nil {
				return err
			}
			scores := map[string]float64{"base": stat.Indicator(base == "pass")}
			if x.Has("plus_status") {
				plus, err := x.Text("plus_status")
				if err != nil {
					return err
				}
				scores["plus"] = stat.Indicator(base == "pass" && plus == "pass")
			}
			f.Responses = append(f.Responses, Response{Item: task, Text: text, Scores: scores, Where: x.Where})
		}
	}
	return nil
}

// readLiveCodeBench reads an item of LiveCodeBench's output, with whole responses in output_list and
// graded_list if evaluated, or of the custom evaluator's input, which has programs only.
func readLiveCodeBench(r rows.Row, f *File) error {
	id, err := r.Text("question_id")
	if err != nil {
		return err
	}
	field := "code_list"
	if r.Has("output_list") {
		field = "output_list"
	}
	texts, err := r.Texts(field)
	if err != nil {
		return err
	}
	var graded []any
	if v, ok := r.Value("graded_list"); ok {
		if graded, ok = v.([]any); !ok || len(graded) != len(texts) {
			return r.Errorf("graded_list", "not a list of %d verdicts", len(texts))
		}
	}
	prompt, _ := r.Value("question_content")
	question, _ := prompt.(string)
	for k, text := range texts {
		out := Response{Item: id, Text: text, Prompt: question, Where: r.Where}
		if graded != nil {
			ok, isBool := graded[k].(bool)
			if !isBool {
				return r.Errorf("graded_list", "verdict %d is not a bool", k+1)
			}
			out.Scores = map[string]float64{"graded": stat.Indicator(ok)}
		}
		f.Responses = append(f.Responses, out)
	}
	return nil
}
