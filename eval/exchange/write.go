package exchange

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"exp/eval/rows"
)

// WriteFormats names the formats that Write supports.
func WriteFormats() []string {
	return []string{"exp", "lm-eval", "lighteval", "verl-dump", "verl-parquet", "humaneval", "evalplus", "lcb",
		"lcb-custom"}
}

// Write writes responses in a format that Read reads back. It drops what the format cannot hold; a missing
// required field is an error.
func (f *File) Write(w io.Writer, format string) error {
	b := bufio.NewWriter(w)
	var err error
	switch format {
	case "exp":
		err = f.writeLines(b, oursRow)
	case "lm-eval":
		err = f.writeHarness(b)
	case "lighteval":
		err = f.writeLighteval(b)
	case "verl-dump":
		err = f.writeLines(b, dumpRow)
	case "verl-parquet":
		err = f.writeGenerations(b)
	case "humaneval":
		err = f.writeLines(b, humanEvalRow)
	case "evalplus":
		err = f.writeEvalPlus(b)
	case "lcb":
		err = f.writeLiveCodeBench(b, true)
	case "lcb-custom":
		err = f.writeLiveCodeBench(b, false)
	default:
		err = fmt.Errorf("cannot write format %q; known: %s", format, strings.Join(WriteFormats(), ", "))
	}
	if err != nil {
		return err
	}
	return b.Flush()
}

// object is a JSON object that keeps the order of its members.
type object []member

type member struct {
	key   string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := plainJSON(m.key)
		if err != nil {
			return nil, err
		}
		value, err := plainJSON(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// plainJSON is json.Marshal without HTML escapes.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// add appends a member unless it is empty.
func (o *object) add(key string, value any, empty bool) {
	if !empty {
		*o = append(*o, member{key, value})
	}
}

func (f *File) writeLines(w io.Writer, row func(*Response) object) error {
	for i := range f.Responses {
		line, err := plainJSON(row(&f.Responses[i]))
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

func oursRow(r *Response) object {
	o := object{{"id", r.Item}}
	o.add("problem", r.Prompt, r.Prompt == "")
	o.add("gold", r.Golds, len(r.Golds) == 0)
	o.add("source", r.Source, r.Source == "")
	o.add("response", r.Text, false)
	o.add("finish", r.Finish.String(), r.Finish == 0)
	o.add("scores", r.Scores, len(r.Scores) == 0)
	return o
}

func dumpRow(r *Response) object {
	o := object{{"input", r.Prompt}, {"output", r.Text}}
	if len(r.Golds) == 1 {
		o.add("gts", r.Golds[0], false)
	} else {
		o.add("gts", r.Golds, len(r.Golds) == 0)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Scores)) {
		o.add(name, r.Scores[name], false)
	}
	o.add("step", 0, false)
	o.add("uid", r.Item, false)
	o.add("sample_index", r.Sample, false)
	o.add("data_source", r.Source, r.Source == "")
	o.add("finish_reason", r.Finish.String(), r.Finish == 0)
	return o
}

func humanEvalRow(r *Response) object {
	o := object{{"task_id", r.Item}, {"completion", r.Text}}
	if passed, ok := r.Scores["passed"]; ok {
		o.add("passed", passed >= 1, false)
	}
	return o
}

// items groups the responses by problem, in file order.
func (f *File) items() [][]*Response {
	var list [][]*Response
	place := map[string]int{}
	for i := range f.Responses {
		r := &f.Responses[i]
		k, ok := place[r.Item]
		if !ok {
			k = len(list)
			place[r.Item] = k
			list = append(list, nil)
		}
		list[k] = append(list[k], r)
	}
	return list
}

func texts(list []*Response) []string {
	var out []string
	for _, r := range list {
		out = append(out, r.Text)
	}
	return out
}

// meanScores averages the scores that all responses have, as the harness scores documents.
func meanScores(list []*Response) map[string]float64 {
	out := map[string]float64{}
	for name := range list[0].Scores {
		sum := 0.0
		for _, r := range list {
			sum += r.Scores[name]
		}
		out[name] = sum / float64(len(list))
	}
	return out
}

func hexSum(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// writeHarness writes lm-evaluation-harness samples, one document per line.
func (f *File) writeHarness(w io.Writer) error {
	for i, list := range f.items() {
		r := list[0]
		target := ""
		if len(r.Golds) > 0 {
			target = r.Golds[0]
		}
		doc := object{{"id", r.Item}, {"problem", r.Prompt}, {"answer", target}}
		packed, err := plainJSON(doc)
		if err != nil {
			return err
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, packed, "", "  "); err != nil {
			return err
		}
		scores := meanScores(list)
		names := slices.Sorted(maps.Keys(scores))
		o := object{{"doc_id", i}, {"doc", doc}, {"target", target},
			{"arguments", object{{"gen_args_0", object{{"arg_0", r.Prompt}, {"arg_1", object{}}}}}},
			{"resps", [][]string{texts(list)}}, {"filtered_resps", texts(list)}, {"filter", "none"},
			{"metrics", append([]string{}, names...)},
			{"doc_hash", hexSum(indented.Bytes())}, {"prompt_hash", hexSum([]byte(r.Prompt))},
			{"target_hash", hexSum([]byte(target))}}
		for _, name := range names {
			o.add(name, scores[name], false)
		}
		line, err := plainJSON(o)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// WriteResults writes scores as lm-evaluation-harness does, but only the part of its results file that
// other programs read.
func WriteResults(w io.Writer, model string, list []Result) error {
	tasks, counts := map[string]map[string]any{}, map[string]any{}
	for _, r := range list {
		if tasks[r.Task] == nil {
			tasks[r.Task] = map[string]any{"alias": r.Task}
			counts[r.Task] = map[string]int{"original": r.Items, "effective": r.Items}
		}
		tasks[r.Task][r.Metric] = r.Value
		tasks[r.Task][stdErrName(r.Metric)] = any("N/A")
		if r.StdErr != nil {
			tasks[r.Task][stdErrName(r.Metric)] = *r.StdErr
		}
	}
	b, err := plainJSON(object{{"results", tasks}, {"n-samples", counts}, {"model_name", model}})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err = w.Write(out.Bytes())
	return err
}

func (f *File) writeEvalPlus(w io.Writer) error {
	tasks := map[string][]object{}
	for _, r := range f.Responses {
		base, ok := r.Scores["base"]
		if !ok {
			return &rows.Error{Where: r.Where, Err: fmt.Errorf("EvalPlus results need the verdict of the base tests")}
		}
		o := object{{"task_id", r.Item}, {"solution", r.Text}, {"base_status", status(base)}}
		if plus, ok := r.Scores["plus"]; ok {
			o.add("plus_status", status(plus), false)
		}
		tasks[r.Item] = append(tasks[r.Item], o)
	}
	b, err := plainJSON(object{{"eval", tasks}})
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

func status(score float64) string {
	if score >= 1 {
		return "pass"
	}
	return "fail"
}

// writeLiveCodeBench writes LiveCodeBench's output, or the input of its custom evaluator, which requires
// sorted problems.
func (f *File) writeLiveCodeBench(w io.Writer, whole bool) error {
	list := f.items()
	slices.SortStableFunc(list, func(a, b []*Response) int { return strings.Compare(a[0].Item, b[0].Item) })
	out := []object{}
	for _, item := range list {
		codes := make([]string, len(item))
		var graded []bool
		for i, r := range item {
			codes[i] = lastFence(r.Text)
			if f.Format == "lcb-custom" {
				codes[i] = r.Text
			}
			if x, ok := r.Scores["graded"]; ok {
				graded = append(graded, x >= 1)
			}
		}
		o := object{{"question_id", item[0].Item}}
		if whole {
			o.add("question_content", item[0].Prompt, item[0].Prompt == "")
			o.add("output_list", texts(item), false)
		}
		o.add("code_list", codes, false)
		o.add("graded_list", graded, !whole || len(graded) < len(item))
		out = append(out, o)
	}
	b, err := plainJSON(out)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// lastFence extracts as LiveCodeBench does: the lines between the last two that contain three backticks;
// empty with fewer than two.
func lastFence(s string) string {
	lines := strings.Split(s, "\n")
	end, start := -1, -1
	for i := len(lines) - 1; i >= 0 && start < 0; i-- {
		if !strings.Contains(lines[i], "```") {
			continue
		}
		if end < 0 {
			end = i
		} else {
			start = i
		}
	}
	if start < 0 {
		return ""
	}
	return strings.Join(lines[start+1:end], "\n")
}

// The columns of verl's data and lighteval's details.
type (
	verlMessage struct {
		Role    string `parquet:"role"`
		Content string `parquet:"content"`
	}
	verlModel struct {
		Style string `parquet:"style"`
		Truth string `parquet:"ground_truth"`
	}
	verlExtra struct {
		Index string `parquet:"index"`
	}
	verlRow struct {
		Source    string        `parquet:"data_source"`
		Prompt    []verlMessage `parquet:"prompt,list"`
		Ability   string        `parquet:"ability"`
		Model     verlModel     `parquet:"reward_model"`
		Extra     verlExtra     `parquet:"extra_info"`
		Responses []string      `parquet:"responses,list"`
	}
	lightevalDoc struct {
		Query     string   `parquet:"query"`
		Choices   []string `parquet:"choices,list"`
		GoldIndex []int64  `parquet:"gold_index,list"`
		ID        string   `parquet:"id"`
	}
	lightevalResponse struct {
		Text []string `parquet:"text,list"`
	}
	lightevalRow struct {
		Doc      lightevalDoc       `parquet:"doc"`
		Metric   map[string]float64 `parquet:"metric"`
		Response lightevalResponse  `parquet:"model_response"`
	}
)

func (f *File) writeGenerations(w io.Writer) error {
	var out []verlRow
	for _, list := range f.items() {
		r := list[0]
		if len(r.Golds) != 1 {
			return &rows.Error{Where: r.Where,
				Err: fmt.Errorf("verl data has one gold answer per problem, this one has %d", len(r.Golds))}
		}
		out = append(out, verlRow{Source: r.Source, Prompt: []verlMessage{{"user", r.Prompt}}, Ability: "math",
			Model: verlModel{"rule", r.Golds[0]},
			Extra: verlExtra{strings.TrimPrefix(r.Item, r.Source+"/")}, Responses: texts(list)})
	}
	return rows.WriteParquet(w, out)
}

func (f *File) writeLighteval(w io.Writer) error {
	var out []lightevalRow
	for _, list := range f.items() {
		r := list[0]
		row := lightevalRow{Doc: lightevalDoc{Query: r.Prompt, Choices: r.Golds, ID: r.Item}, Metric: meanScores(list),
			Response: lightevalResponse{texts(list)}}
		for i := range r.Golds {
			row.Doc.GoldIndex = append(row.Doc.GoldIndex, int64(i))
		}
		out = append(out, row)
	}
	return rows.WriteParquet(w, out)
}

// WithScores returns a copy of the file with scores[i] as the verdicts of response i.
func (f *File) WithScores(scores []map[string]float64) *File {
	out := *f
	out.Responses = slices.Clone(f.Responses)
	for i := range out.Responses {
		out.Responses[i].Scores = scores[i]
	}
	return &out
}
