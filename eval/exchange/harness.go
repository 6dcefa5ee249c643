package exchange

import (
	"encoding/json"
	"maps"
	"strings"

	"exp/eval/layout"
	"exp/eval/rows"
)

// readHarness reads a line of lm-evaluation-harness samples: a document with its responses. With several
// filters a document occurs once per filter, with the same responses but other metrics. Metrics belong to
// the document, so they are the verdict of a response only if there is just one.
func readHarness(r rows.Row, f *File) error {
	id, err := r.Text("doc_id")
	if err != nil {
		return err
	}
	texts, err := harnessTexts(r)
	if err != nil {
		return err
	}
	scores, err := harnessScores(r)
	if err != nil {
		return err
	}
	if len(texts) > 1 {
		clear(scores)
	}
	if first, again := f.docs[id]; again {
		if !r.Has("filter") {
			return r.Errorf("doc_id", "document %s occurs twice", id)
		}
		maps.Copy(f.Responses[first].Scores, scores)
		return nil
	}
	if f.docs == nil {
		f.docs = map[string]int{}
	}
	f.docs[id] = len(f.Responses)
	golds, err := harnessGolds(r)
	if err != nil {
		return err
	}
	for _, text := range texts {
		f.Responses = append(f.Responses, Response{Item: id, Text: text, Prompt: harnessPrompt(r), Golds: golds,
			Scores: scores, Where: r.Where})
	}
	return nil
}

// harnessTexts reads resps, [[text, …]]: one list per request, with its repetitions.
func harnessTexts(r rows.Row) ([]string, error) {
	v, _ := r.Value("resps")
	requests, ok := v.([]any)
	if !ok || len(requests) == 0 {
		return nil, r.Errorf("resps", "not a list of responses")
	}
	repeats, ok := requests[0].([]any)
	if !ok {
		repeats = requests
	}
	var texts []string
	for _, x := range repeats {
		s, ok := x.(string)
		if !ok {
			return nil, r.Errorf("resps", "not a text: tasks that compare likelihoods have no responses to grade")
		}
		texts = append(texts, s)
	}
	if len(texts) == 0 {
		return nil, r.Errorf("resps", "empty list")
	}
	return texts, nil
}

// harnessScores reads the metrics that the line names, under "metric,filter".
func harnessScores(r rows.Row) (map[string]float64, error) {
	scores := map[string]float64{}
	if !r.Has("metrics") {
		return scores, nil
	}
	names, err := r.Texts("metrics")
	if err != nil {
		return nil, err
	}
	suffix := ""
	if filter, _ := r.Value("filter"); filter != nil {
		if s, _ := filter.(string); s != "" {
			suffix = "," + s
		}
	}
	for _, name := range names {
		if x, err := r.Number(name); err == nil { // some metrics are not one number per sample
			scores[name+suffix] = x
		}
	}
	return scores, nil
}

// harnessGolds takes the gold answer from the document if its layout is known, else from the target.
func harnessGolds(r rows.Row) ([]string, error) {
	v, _ := r.Value("doc")
	if fields, ok := v.(map[string]any); ok {
		doc := rows.Row{Path: r.Path, Where: r.Where, Fields: fields}
		l, err := layout.Detect(doc)
		if err == nil && !l.Shuffles() { // the harness shuffles options itself
			if p, err := l.Parse(doc); err == nil {
				facts, err := layout.FactsOf(&p)
				return append([]string{p.Answer}, facts.Answers...), err
			}
		}
	}
	if !r.Has("target") {
		return nil, nil
	}
	golds, err := r.Texts("target")
	for i, s := range golds {
		if k := strings.LastIndex(s, string(layout.Hash)); k >= 0 {
			s = s[k+len(layout.Hash):]
		}
		golds[i] = strings.TrimSpace(s)
	}
	return golds, err
}

// harnessPrompt reads arguments.gen_args_0.arg_0; earlier versions have arguments[0][0].
func harnessPrompt(r rows.Row) string {
	if s, err := r.Text("arguments.gen_args_0.arg_0"); err == nil {
		return s
	}
	v, _ := r.Value("arguments")
	if list, ok := v.([]any); ok && len(list) > 0 {
		if first, ok := list[0].([]any); ok && len(first) > 0 {
			s, _ := first[0].(string)
			return s
		}
	}
	return ""
}

// Result is a published score: one metric on one task.
type Result struct {
	Task, Metric string   // "gsm8k", "exact_match,strict-match"
	Value        float64  // as printed in the file
	StdErr       *float64 // nil if absent
	Items        int      // number of problems; 0 if the file does not say
}

// isResults recognises the score files of lm-evaluation-harness, lighteval and LiveCodeBench.
func isResults(r rows.Row) bool {
	return r.Has("results") || r.Has("config_general") || r.Has("pass@1", "detail")
}

// ReadResults reads the scores of a results file of lm-evaluation-harness (results_TIME.json) or lighteval,
// sorted by name.
func ReadResults(path string) ([]Result, error) {
	all, err := rows.All(path)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 || !all[0].Has("results") {
		return nil, &rows.Error{Where: path, Field: "results", Err: rows.ErrMissing}
	}
	r := all[0]
	v, _ := r.Value("results")
	tasks, ok := v.(map[string]any)
	if !ok {
		return nil, r.Errorf("results", "not an object of tasks")
	}
	var list []Result
	for _, task := range sortedKeys(tasks) {
		metrics, ok := tasks[task].(map[string]any)
		if !ok {
			return nil, r.Errorf("results."+task, "not an object of metrics")
		}
		for _, name := range sortedKeys(metrics) {
			number, ok := metrics[name].(json.Number)
			if !ok || isStdErr(name) || name == "sample_len" || strings.HasPrefix(name, "sample_len,") {
				continue
			}
			x, err := number.Float64()
			if err != nil {
				return nil, r.Errorf("results."+task+"."+name, "%w", err)
			}
			res := Result{Task: task, Metric: name, Value: x}
			if n, ok := metrics[stdErrName(name)].(json.Number); ok {
				if se, err := n.Float64(); err == nil {
					res.StdErr = &se
				}
			}
			if n, err := r.Number("n-samples." + task + ".effective"); err == nil {
				res.Items = int(n)
			}
			list = append(list, res)
		}
	}
	return list, nil
}

// stdErrName turns "metric,filter" into "metric_stderr,filter".
func stdErrName(metric string) string {
	name, filter, ok := strings.Cut(metric, ",")
	if ok {
		return name + "_stderr," + filter
	}
	return name + "_stderr"
}

func isStdErr(name string) bool {
	name, _, _ = strings.Cut(name, ",")
	return strings.HasSuffix(name, "_stderr")
}
