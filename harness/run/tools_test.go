package run

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/plan"
	"exp/sandbox"
)

// toolProgram answers as a user who says how long the turn was, and leaves after a turn with an e.
func toolProgram() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var call struct{ ID, Input, Problem string }
		if err := json.Unmarshal(in.Bytes(), &call); err != nil {
			panic(err)
		}
		if strings.Contains(call.Input, "e") {
			fmt.Printf("{\"id\": %q, \"end\": true}\n", call.ID)
			continue
		}
		fmt.Printf("{\"id\": %q, \"output\": \"%d on %s\"}\n", call.ID, len(call.Input), call.Problem)
	}
}

// sameRun executes plans in two stores and compares all that they made. It returns the first.
func sameRun(t *testing.T, p func(l *lab) *plan.Run, q func(l *lab) *plan.Run) (*lab, Result) {
	t.Helper()
	a, b := newLab(t), newLab(t)
	pa, pb := p(a), q(b)
	if pa.RID != pb.RID {
		t.Errorf("two runs, %s and %s", pa.RID, pb.RID)
	}
	first, said := a.execute(pa)
	second, _ := b.execute(pb)
	sameOutputs(t, a.outputs(first.Run.ID), b.outputs(second.Run.ID))
	if len(said.warnings) > 0 {
		t.Errorf("warnings: %q", said.warnings)
	}
	return a, first
}

// inserted counts what tools wrote into a run's completions, in training and in its evaluation.
func inserted(t *testing.T, l *lab, run store.Run) (training, evaluation int) {
	t.Helper()
	for _, q := range []store.SampleQuery{{Scope: "train"}, {Scope: "eval"}} {
		list, _, err := recorded.Completions{DB: l.db, Run: run, Query: q}.Read(context.Background(), 0)
		if err != nil || len(list) == 0 {
			t.Fatalf("%d completions, %v", len(list), err)
		}
		for _, c := range list {
			at := 0
			for _, s := range c.Inserted {
				if s.Start < at || s.End <= s.Start || s.End >= len(c.TokenIDs) || s.TextEnd > len(c.Text) {
					t.Fatalf("%s, sample %d: %+v of %d tokens", c.Item, c.K, c.Inserted, len(c.TokenIDs))
				}
				for _, x := range c.LogProbs[s.Start:s.End] {
					if x != 0 {
						t.Fatalf("%s, sample %d: an inserted token has log-prob %v", c.Item, c.K, x)
					}
				}
				at = s.End
			}
			if q.Scope == "train" {
				training += len(c.Inserted)
			} else {
				evaluation += len(c.Inserted)
			}
		}
	}
	return training, evaluation
}

// A run whose policy calls Python has the same bits whatever the sampler's sizes; the settings of its tools are
// part of it.
func TestPythonTool(t *testing.T) {
	if _, _, err := sandbox.Check(context.Background(), sandbox.Config{}); err != nil {
		t.Skip(err)
	}
	const tool = `rollout.tools={kind: python, format: tags, call: ["(", ")"], answer: ["=", ","], max_turns: 3}`
	sets := []string{tool, "store.samples.train=all", "store.samples.eval=all", "sft={steps: 0}"}
	a, res := sameRun(t, func(l *lab) *plan.Run { return l.plan(1, sets...) }, func(l *lab) *plan.Run {
		return l.plan(1, append(sets, "rollout.max_sequences=3", "rollout.cache_tokens=160")...)
	})
	if n, m := inserted(t, a, res.Run); n == 0 || m == 0 {
		t.Errorf("%d answers in training, %d in the evaluation", n, m)
	}
	a.samplesAgain(a.plan(1, sets...))
	curves, err := a.db.Metrics(context.Background(), res.Run.ID, "num_turns/mean", 1, 4)
	if err != nil || len(curves) != 1 || curves[0].Values[0] < 2 {
		t.Errorf("num_turns: %v, %v", curves, err)
	}
	if curves, err := a.db.Metrics(context.Background(), res.Run.ID, "val-aux/num_turns/max", 1, 4); err != nil || len(curves) != 1 {
		t.Errorf("num_turns of validations: %v, %v", curves, err)
	}
	if other := a.plan(1, append(sets, "rollout.tools.max_turns=2")...); other.RID == res.Run.RID {
		t.Error("another number of turns is the same run")
	}
}

// A program that ends at once is found before any work.
func TestToolEnds(t *testing.T) {
	l := newLab(t)
	_, err := l.try(context.Background(), l.plan(1, "rollout.tools={kind: command, format: tags, command: [sh, -c, exit 3]}"), &quiet{})
	if err == nil || !strings.Contains(err.Error(), "tool sh: it ended (exit status 3) before any call") {
		t.Errorf("error %v", err)
	}
}

// A program may answer every turn as a user, between messages of the chat template.
func TestCommandTool(t *testing.T) {
	template := filepath.Join(t.TempDir(), "chat.jinja")
	text := "{% for m in messages %}[{{ m.role }}] {{ m.content }}<|endoftext|>{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}"
	if err := os.WriteFile(template, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	sets := []string{"rollout.tools={kind: command, format: user, command: [" + os.Args[0] + ", tool-program], max_turns: 3}",
		"tokenizer={kind: file, path: ../../configs/tokenizers/stories}", "data.chat=" + template, "data.max_prompt_tokens=64",
		"rollout.max_new_tokens=120", "eval.final.max_new_tokens=120", "model.arch.max_positions=200", "store.samples.train=all", "store.samples.eval=all",
		"rollout.temperature=3", "eval.final.temperature=3", "compute.micro_batch_tokens=4096"}
	a, res := sameRun(t, func(l *lab) *plan.Run { return l.plan(1, sets...) }, func(l *lab) *plan.Run {
		return l.plan(1, append(sets, "rollout.tools.workers=3", "rollout.max_sequences=5")...)
	})
	a.samplesAgain(a.plan(1, sets...))
	n, m := inserted(t, a, res.Run)
	if n == 0 || m == 0 {
		t.Errorf("%d answers in training, %d in the evaluation", n, m)
	}
	list, _, err := recorded.Completions{DB: a.db, Run: res.Run, Query: store.SampleQuery{Scope: "train"}}.Read(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		for _, part := range c.Parts() {
			if part.Tool && !strings.Contains(part.Text, "[user] ") && !strings.HasSuffix(part.Text, " on "+c.Item+"[assistant] ") {
				t.Fatalf("%s, sample %d: the tool wrote %q", c.Item, c.K, part.Text)
			}
		}
	}
}
