package stage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/plan"
	"exp/harness/stage"
	"exp/sandbox"
	"exp/train/rollout"
)

// What a run sampled, written to a file and read back, trains to the same weights in
// the first step; the file's contents are part of what the run is, its name is not.
func TestRecordedRollouts(t *testing.T) {
	tr := newTrial(t)
	var lines strings.Builder
	e := tr.env
	e.Hooks.Step = func(s stage.Step) error {
		for i := range s.Trajectories {
			x := &s.Trajectories[i]
			fmt.Fprintf(&lines, "{\"id\": %q, \"response\": %q, \"tokens\": %s, \"logprobs\": %s, \"reward\": %v}\n", x.Problem.ID, x.Completion.Text,
				list(x.Completion.Tokens), list(x.Completion.LogProbs), x.Verdict.Reward)
		}
		return nil
	}
	// Every weight that the step may change has its effect on the evaluation: one blob.
	weights := func(e stage.Env, in stage.Inputs, sets ...string) ident.Digest {
		t.Helper()
		own := &trial{t: t, env: e, in: in}
		out := own.run(config.Train, in, append([]string{"algo.kind=grpo", "train.steps=1"}, sets...)...)
		return out.Outputs[0].Digest
	}
	want := weights(e, tr.in)
	dir := t.TempDir()
	for name, text := range map[string]string{"all": lines.String(), "text": dropFields(lines.String())} {
		path := filepath.Join(dir, name+".jsonl")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		source := "rollout={source: recorded, recorded: " + path + "}"
		in := maps.Clone(tr.in)
		for _, o := range tr.run(config.Prepare, in, source).Outputs {
			in[o.Role] = o.Digest
		}
		if in[stage.RoleTrain] != tr.in[stage.RoleTrain] {
			t.Fatal("other problems")
		}
		if got := weights(tr.env, in, source); got != want {
			t.Errorf("%s: weights %s, want %s", name, got.Short(), want.Short())
		}
	}
}

// Completions with turns, too: the file says what tools wrote.
func TestRecordedTurns(t *testing.T) {
	if _, _, err := sandbox.Check(context.Background(), sandbox.Config{}); err != nil {
		t.Skip(err)
	}
	tr := newTrial(t)
	var spans, masks strings.Builder
	inserted := 0
	e := tr.env
	e.Hooks.Step = func(s stage.Step) error {
		for i := range s.Trajectories {
			x := &s.Trajectories[i]
			c := x.Completion
			row := fmt.Sprintf("{\"id\": %q, \"response\": %q, \"tokens\": %s, \"logprobs\": %s, \"finish\": %q, ", x.Problem.ID, c.Text,
				list(c.Tokens), list(c.LogProbs), c.Finish)
			b, err := json.Marshal(append([]rollout.Span{}, c.Inserted...))
			if err != nil {
				return err
			}
			fmt.Fprintf(&spans, "%s\"inserted\": %s}\n", row, b)
			mask := make([]bool, len(c.Tokens))
			c.Sampled(mask)
			var bits []int32
			for _, on := range mask {
				bits = append(bits, map[bool]int32{true: 1}[on])
			}
			fmt.Fprintf(&masks, "%s\"response_mask\": %s}\n", row, list(bits))
			inserted += len(c.Inserted)
		}
		return nil
	}
	weights := func(e stage.Env, in stage.Inputs, sets ...string) ident.Digest {
		t.Helper()
		own := &trial{t: t, env: e, in: in}
		return own.run(config.Train, in, append([]string{"algo.kind=grpo", "train.steps=1"}, sets...)...).Outputs[0].Digest
	}
	want := weights(e, tr.in, `rollout.tools={kind: python, format: tags, call: ["(", ")"], answer: ["=", ","], max_turns: 3}`)
	if inserted == 0 {
		t.Fatal("no tool was called")
	}
	for name, text := range map[string]string{"spans": spans.String(), "masks": masks.String()} {
		path := filepath.Join(t.TempDir(), name+".jsonl")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		source := "rollout={source: recorded, recorded: " + path + "}"
		in := maps.Clone(tr.in)
		for _, o := range tr.run(config.Prepare, in, source).Outputs {
			in[o.Role] = o.Digest
		}
		if got := weights(tr.env, in, source); got != want {
			t.Errorf("%s: weights %s, want %s", name, got.Short(), want.Short())
		}
	}
}

func list[T int32 | float32](x []T) string { return strings.ReplaceAll(fmt.Sprint(x), " ", ", ") }

// dropFields leaves id, response, and the reward: texts are encoded again, and the
// policy's log-probs taken.
func dropFields(lines string) string {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		from, _, _ := strings.Cut(line, `, "tokens"`)
		_, reward, _ := strings.Cut(line, `], "reward"`)
		b.WriteString(from + `, "reward"` + reward)
	}
	return b.String()
}

func TestRecordedIdentity(t *testing.T) {
	dir := t.TempDir()
	sources := map[config.Stage]plan.Code{}
	rid := func(name, text string) ident.Digest {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: []string{"rollout={source: recorded, recorded: " + path + "}"}})
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.New(r, 0, "cpu/fma", sources)
		if err != nil {
			t.Fatal(err)
		}
		return p.RID
	}
	a := rid("a.jsonl", `{"id": "x", "response": "1+2", "logprobs": [-1, -2.5, -0.5]}`)
	if b := rid("b.jsonl", `[{"logprobs": [-1.0, -2.5, -0.5], "item": "x", "completion": "1+2"}]`); a != b {
		t.Error("the same rollouts under another name in another layout are another run")
	}
	stopped := rid("c.jsonl", `{"id": "x", "response": "1+2", "finish": "stop"}`)
	if shown := rid("d.jsonl", `{"id": "x", "response": "1+2", "finish": "shown"}`); shown != stopped {
		t.Error("a demonstration of another run counts as something else than a completion")
	}
	if b := rid("a.jsonl", `{"id": "x", "response": "1+2", "logprobs": [-1, -2.5, -0.25]}`); a == b {
		t.Error("other log-probs are the same run")
	}
}

func TestRecordedErrors(t *testing.T) {
	for name, tt := range map[string]struct{ rows, want string }{
		"nothing":        {"", "holds no rollouts"},
		"no problem":     {`{"response": "1"}`, `:1: field "id": missing; a row names its problem`},
		"no response":    {`{"id": "x"}`, `:1: field "response": missing; a row has response, tokens or both`},
		"mixed":          {`{"id": "x", "response": "1", "logprobs": [-1]}` + "\n" + `{"id": "x", "response": "1"}`, `:2: field "logprobs": some rows have log-probs`},
		"lengths":        {`{"id": "x", "response": "1+2", "logprobs": [-1, -2]}`, ":1: 2 log-probs, but the response encodes to 3 tokens: give its tokens too"},
		"token lengths":  {`{"id": "x", "tokens": [5, 6, 7], "logprobs": [-1, -2]}`, ":1: 2 log-probs for 3 tokens"},
		"vocabulary":     {`{"id": "x", "tokens": [5, 6000]}`, ":1: token 2 is 6000, the vocabulary ends at"},
		"reward":         {`{"id": "x", "response": "1", "reward": 1e39}`, `:1: field "reward": 1e+39 is not a finite float32`},
		"negative":       {`{"id": "x", "tokens": [5, -1]}`, `:1: field "tokens": item 2: below 0`},
		"other text":     {`{"id": "x", "response": "9", "tokens": [5, 6]}`, "another tokenizer?"},
		"character":      {`{"id": "x", "response": "ü"}`, ":1: "},
		"long":           {`{"id": "x", "response": "` + strings.Repeat("1", 200) + `"}`, "rollout.max_new_tokens is"},
		"tokens missing": {`{"id": "x", "response": "", "finish": "length"}`, "has no tokens"},
		"finish":         {`{"id": "x", "response": "1", "finish": "eos"}`, `field "finish": "eos" is none of stop, length and turns`},
		"inserted":       {`{"id": "x", "tokens": [5, 6], "inserted": [[0, 2]]}`, "does not lie between sampled tokens"},
		"far inserted":   {`{"id": "x", "tokens": [5, 6], "inserted": [{"start": 1, "end": 9}]}`, "inserted has tokens 1 to 9"},
		"conversations":  {`{"id": "x", "tokens": [5, 6], "later": [{"start": 1}]}`, "an agent's episode of several conversations"},
		"inserted text":  {`{"id": "x", "response": "1", "inserted": [[0, 1]]}`, "the row has no tokens"},
		"bad inserted":   {`{"id": "x", "tokens": [5, 6], "inserted": [[0]]}`, `item 1 is neither [from, to] nor {"start": from, "end": to}`},
		"messages":       {`{"prompt": [{"role": "user"}], "response": "1"}`, "it is not text; name the problem by its id"},
	} {
		path := filepath.Join(t.TempDir(), "r.jsonl")
		if err := os.WriteFile(path, []byte(tt.rows), 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: []string{"rollout={source: recorded, recorded: " + path + "}"}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = stage.Externals(r)
		var errs config.Errors
		if !errors.As(err, &errs) || len(errs) != 1 || !strings.Contains(errs[0].Message, tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	for _, sets := range [][]string{{"rollout={source: recorded, recorded: x.jsonl, staleness: 1}"}, {"rollout={source: recorded, recorded: x.jsonl, top_k: 4}"}, {"rollout.recorded=x.jsonl"}, {"rollout.source=recorded"}} {
		if _, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: sets}); err == nil {
			t.Errorf("%v is accepted", sets)
		}
	}
}

// Before anything is trained on, the problems of the run's steps are looked up.
func TestRecordedTooFew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	if err := os.WriteFile(path, []byte(`{"id": "nowhere", "response": "1"}`), 0o666); err != nil {
		t.Fatal(err)
	}
	tr := newTrial(t)
	source := "rollout={source: recorded, recorded: " + path + "}"
	in := stage.Inputs{}
	for _, o := range tr.run(config.Prepare, in, source).Outputs {
		in[o.Role] = o.Digest
	}
	e := tr.env
	var err error
	if e.Config, err = config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: []string{source}}); err != nil {
		t.Fatal(err)
	}
	err = stage.CheckProblems(&e, func(role string) (ident.Digest, bool) { d, ok := in[role]; return d, ok })
	var errs config.Errors
	if !errors.As(err, &errs) || !strings.Contains(errs[0].Message, "has 0 recorded completions; a step needs 4") ||
		!strings.Contains(errs[0].Help, "left out: 1 rollout of problems that are not in data.train") {
		t.Errorf("CheckProblems = %v", err)
	}
}
