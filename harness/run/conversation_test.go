package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/harness/forecast"
	"exp/harness/plan"
	"exp/harness/stage"
	"exp/kernels"
)

// conversationFile writes conversations with a tool that says output; the last one never ends.
func conversationFile(t *testing.T, output string) string {
	t.Helper()
	var b strings.Builder
	for i := range 8 {
		fmt.Fprintf(&b, `{"messages": [{"role": "system", "content": "Add."}, {"role": "user", "content": "%d+1?"}, `+
			`{"role": "assistant", "content": "=%d+1"}, {"role": "tool", "content": %q}, {"role": "assistant", "content": "%d"}]}`+"\n", i, i, output, i+1)
	}
	fmt.Fprintf(&b, `{"conversations": [{"from": "human", "value": "?"}, {"from": "gpt", "value": %q}]}`+"\n", strings.Repeat("1", 100))
	path := filepath.Join(t.TempDir(), "talks.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// conversationRun plans a run that learns conversations.
func conversationRun(l *lab, file string, sets ...string) *plan.Run {
	l.t.Helper()
	return chatRun(l, testTemplate, append([]string{"train.steps=1", "sft={steps: 30, problems_per_step: 4, max_tokens: 60, optim: {lr: 0.01}}", "sft.source=" + file}, sets...)...)
}

// A run fine-tunes on conversations, counts the tokens it trained on, and starts RL from the result. Changing the RL
// problems leaves the fine-tuning stage alone.
func TestConversationRun(t *testing.T) {
	l := newLab(t)
	file := conversationFile(t, "99")
	p := conversationRun(l, file)
	// <system>Add.\n<user>0+1?\n<assistant> =0+1■\n<tool>99\n<assistant> 1■, and <user>?\n<assistant>, 60 in all.
	const prompt, own, heard, again = 13 + 11 + 11, 4 + 1, 1 + 9 + 11, 1 + 1
	const whole, cut = prompt + own + heard + again, 19
	if got := p.External.Prompter.Plan().SFT.String(); got != fmt.Sprintf("9 conversations of up to %d tokens; %.0f %% of all %d are learned, "+
		"the assistant's; sft.max_tokens cuts 9", 60, 100*float64(8*own+41)/(8*40+60), 8*40+60) {
		t.Errorf("the plan says %q (a whole conversation has %d tokens)", got, whole)
	}
	res, q := l.execute(p)
	var got map[string]any
	if err := json.Unmarshal(l.stageOf(res.Run.ID, "sft").Result, &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"conversations": 9, "tokens": 8*(prompt+own) + 60, "learned_tokens": 8*own + 60 - cut, "cut": 9, "left_out": 0} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	if loss, _ := got["sft/loss"].(float64); !(loss > 0 && loss < 2) { // ln 257 = 5.5 at the start
		t.Errorf("loss %v", loss)
	}
	if !strings.Contains(strings.Join(q.warnings, "\n"), "sft.source: 9 conversations") {
		t.Errorf("nobody is told of the cut: %q", q.warnings)
	}
	before := l.stageOf(res.Run.ID, "sft").SID
	other, _ := l.execute(conversationRun(l, file, "data.train.size=12"))
	if l.stageOf(other.Run.ID, "sft").SID != before {
		t.Error("other training problems are another fine-tuning")
	}
	if p := conversationRun(l, conversationFile(t, "98")); p.RID == res.Run.RID {
		t.Error("other conversations are the same run")
	}
}

// Conversations alone are enough: the run ends with the evaluation of the fine-tuned weights.
func TestConversationsOnly(t *testing.T) {
	l := newLab(t)
	p := conversationRun(l, conversationFile(t, "99"), "train.steps=0", "data.train={source: none, size: 0}", "data.val={source: none, size: 0}", "eval.online.every_steps=0")
	res, q := l.execute(p)
	if got := executedStages(q); got != "prepare init sft merge eval.gen[test] eval.score[test]" {
		t.Errorf("stages %s", got)
	}
	if _, err := os.Stat(filepath.Join(l.db.RunDir(res.Run.RID), stage.MergedDir, "model.safetensors")); err != nil {
		t.Error(err)
	}
}

// A conversation that does not fit is found before any work, with its line.
func TestConversationErrorsInPlan(t *testing.T) {
	l := newLab(t)
	file := conversationFile(t, "99")
	for set, want := range map[string]string{
		"model.arch.max_positions=100":   "sft.max_tokens: " + file + ":9: the conversation has 120 tokens, the model has 100 positions; sft.max_tokens: 100 cuts it",
		"sft.problems_per_step=10":       "sft.source: " + file + " has 9 conversations to learn from, sft.problems_per_step asks for 10",
		"data.chat=none":                 "sft.source: " + file + ":1: the run has no chat template",
		"sft.source=" + file + "l.jsonl": "no such file",
	} {
		sets := []string{"name=x", "task={kind: math, math: {grader: math_dapo}}", "tokenizer.kind=byte", "reward={correct: 1, wrong: -1}", "model.arch.max_positions=128",
			"data.max_prompt_tokens=64", "data.chat=" + chatFile(t), "data.filter_overlong=true", "sft={steps: 1, problems_per_step: 4}", "sft.source=" + file}
		data := verlFile(t)
		for _, split := range []string{"train", "val", "test"} {
			sets = append(sets, fmt.Sprintf("data.%s={source: %s, size: 0}", split, data))
		}
		_, err := plan.New(smoke(t, append(sets, set)...), 0, l.be.Class(), l.sources)
		if err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(want[strings.Index(want, ": ")+1:], " ")) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
}

// A file that is not there is named before anything else.
func TestConversationFileIsMissing(t *testing.T) {
	err := RequireFiles(smoke(t, "sft={steps: 1, source: nowhere.jsonl}"))
	var lack *RequireError
	if !errors.As(err, &lack) || len(lack.Missing) != 1 || lack.Missing[0] != "the data of sft.source: nowhere.jsonl cannot be read" ||
		!strings.Contains(lack.Do[0], "counts from the current directory, /") {
		t.Errorf("%v", err)
	}
}

func chatFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chat.jinja")
	if err := os.WriteFile(path, []byte(testTemplate), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Ranks of a run that only fine-tunes, which has no algorithm, need no room to sample.
func TestConversationsOnRanks(t *testing.T) {
	l := newLab(t)
	p := conversationRun(l, conversationFile(t, "99"), "train.steps=0", "data.train={source: none, size: 0}", "data.val={source: none, size: 0}", "eval.online.every_steps=0")
	p.Config.Run.Algo = config.Algo{}
	x := &execution{Runner: &Runner{}, p: p}
	if got := x.forecast().SamplerPlacement(); got != (stage.Placement{}) {
		t.Errorf("a placement to sample: %+v", got)
	}
	p.Config.Run.Compute.Device = "cuda"
	for _, kind := range []config.Stage{config.Prepare, config.SFT, config.Merge} {
		x.forecast().Placement(kind) // panics if it plans training
	}
}

// A run that only fine-tunes is planned with the memory that this takes, and a sampler's only if it has suites.
func TestConversationsInPlan(t *testing.T) {
	only := []string{"train.steps=0", "data.train={source: none, size: 0}", "data.val={source: none, size: 0}", "eval.online.every_steps=0",
		"sft.optim.warmup_steps=0", "compute.threads=2"}
	for suites, says := range map[string]string{"[]": "moments of the optimizer", "[test]": "in SFT, which needs more than sampling"} {
		l := newLab(t)
		p := conversationRun(l, conversationFile(t, "99"), append(only, "rollout={max_sequences: 1, page_tokens: 16}", "eval.final.suites="+suites)...)
		e, err := forecast.Of(p.Config, 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		text := e.Text("")
		if strings.Contains(text, "key/value cache") != (suites != "[]") || !strings.Contains(text, says) {
			t.Errorf("%s: the plan is\n%s", suites, text)
		}
		if got, want := e.Resident(1), max(e.Total(), e.Planned(config.SFT))+e.Program; got != want || e.StageBytes(config.Merge) == 0 {
			t.Errorf("%s: needs %d bytes, want %d; merge writes %d", suites, got, want, e.StageBytes(config.Merge))
		}
		res, _ := l.execute(p)
		use := l.memoryOf(res.Run.ID)["sft"]
		if x := float64(use.Peak) / float64(use.Planned); !(x > 0.8 && x <= 1.05) {
			t.Errorf("%s: peak %d bytes, planned %d", suites, use.Peak, use.Planned)
		}
	}
}

// stopping is a backend that calls stop in the n-th update of parameters.
type stopping struct {
	kernels.Backend
	updates, at int
	stop        func()
}

func (b *stopping) AdamW(p, m, v, g kernels.Buffer, a kernels.AdamW) {
	if b.updates++; b.updates == b.at {
		b.stop()
	}
	b.Backend.AdamW(p, m, v, g, a)
}

// Fine-tuning on conversations that was stopped, or died, in the middle of an epoch ends as one that was not, bit for
// bit: weights, curve and merged folder. It goes on from the step it had reached, or from its last checkpoint, and leaves
// no checkpoints.
func TestConversationsResume(t *testing.T) {
	file := conversationFile(t, "99")
	only := []string{"train.steps=0", "data.train={source: none, size: 0}", "data.val={source: none, size: 0}", "eval.online.every_steps=0", "eval.final.suites=[]"}
	const steps, at = 30, 13 // 9 conversations, 4 a step
	whole := newLab(t)
	want, _ := whole.execute(conversationRun(whole, file, only...))
	if n := len(whole.outputs(want.Run.ID)); n < 5 {
		t.Fatalf("%d outputs", n)
	}
	for name, again := range map[string]int{"stopped": steps - at, "died": steps, "died after a checkpoint": steps - 10} {
		only := append([]string{"checkpoint={every_steps: 0, every_minutes: 0}"}, only...)
		if name == "died after a checkpoint" {
			only[0] = "checkpoint={every_steps: 5, keep: 1}"
		}
		ctx, cancel := context.WithCancel(t.Context())
		l := newLab(t)
		good := l.be
		stop := cancel
		if name != "stopped" {
			stop = func() { panic("broken") }
		}
		l.be = &stopping{Backend: good, at: at, stop: stop}
		if _, err := l.try(ctx, conversationRun(l, file, only...), &quiet{}); err == nil {
			t.Fatalf("%s: it ended", name)
		}
		cancel()
		left, err := filepath.Glob(filepath.Join(stage.CheckpointsDir(l.db.RunDir(want.Run.RID)), "sft-*", "step-*"))
		if err != nil || (len(left) == 1) != (again < steps) {
			t.Errorf("%s: it left %q, %v", name, left, err)
		}
		count := &stopping{Backend: good}
		l.be, l.options.Resume = count, true
		got, _ := l.execute(conversationRun(l, file, only...))
		if count.updates != again {
			t.Errorf("%s: %d more updates, want %d", name, count.updates, again)
		}
		if got.Run.RID != want.Run.RID {
			t.Errorf("%s: another run", name)
		}
		sameOutputs(t, l.outputs(got.Run.ID), whole.outputs(want.Run.ID))
		if left, err := filepath.Glob(filepath.Join(stage.CheckpointsDir(l.db.RunDir(want.Run.RID)), "sft-*")); err != nil || len(left) > 0 {
			t.Errorf("%s: in the end it left %q, %v", name, left, err)
		}
	}
}
