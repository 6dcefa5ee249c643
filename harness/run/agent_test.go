package run

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"exp/eval"
	"exp/experiments/ident"
	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/plan"
	"exp/train/rollout"
)

// agentProgram asks the problem, and while answers are short of letters it asks on. It scores the share of vowels, and
// leaves problems of even length to the run's graders. If it fails, it cannot play answers that begin with z; if it
// delegates, it lets the policy check long answers in another conversation, and tells the first what came of it. In all
// modes it gives the state of each turn, and the turn's reward unless the graders score the problem. It plays episodes
// as they come.
func agentProgram(mode string) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	var open sync.WaitGroup
	var mu sync.Mutex // of the output
	for in.Scan() {
		var e agentEpisode
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			panic(err)
		}
		open.Go(func() {
			line := e.play(mode)
			mu.Lock()
			defer mu.Unlock()
			fmt.Println(line)
		})
	}
	open.Wait()
}

type agentEpisode struct {
	ID      string
	BaseURL string `json:"base_url"`
	Prompt  string
	// Messages show images.
	Messages []json.RawMessage
}

// play returns the line that ends an episode.
func (e *agentEpisode) play(mode string) string {
	if mode == "shows" {
		return e.show()
	}
	messages := []map[string]string{{"role": "system", "content": "count"}, {"role": "user", "content": e.Prompt}}
	var turns []string // what each answer earned, and its length before as the state
	before := 0
	ask := func(messages any) string {
		said, ok := answerOf(e.BaseURL, messages)
		if ok {
			earned := fmt.Sprintf(`"reward": %v, `, float64(strings.Count(said, "a"))/4)
			turns = append(turns, fmt.Sprintf(`{%s"state": "%d"}`, earned[:len(earned)*(len(e.Prompt)%2)], before%3))
			before = len(said)
		}
		return said
	}
	said := ask(messages)
	for turn := 1; turn < 3 && len(said)%3 > 0; turn++ {
		messages = append(messages, map[string]string{"role": "assistant", "content": said},
			map[string]string{"role": "user", "content": fmt.Sprint(len(said), " is few")})
		next := ask(messages)
		if next == "" {
			break
		}
		said = next
	}
	if mode == "delegates" && len(said) > 4 {
		checked := ask([]map[string]string{{"role": "user", "content": "check " + said}})
		messages = append(messages, map[string]string{"role": "assistant", "content": said},
			map[string]string{"role": "user", "content": fmt.Sprint(len(checked), " is few")})
		if next := ask(messages); next != "" {
			said = next
		}
	}
	switch vowels := strings.Count(said, "a") + strings.Count(said, "e") + strings.Count(said, "o"); {
	case mode == "fails" && strings.HasPrefix(said, "z"):
		return fmt.Sprintf(`{"id": %q, "error": "z is not playable"}`, e.ID)
	case mode != "" && len(e.Prompt)%2 == 0:
		return fmt.Sprintf(`{"id": %q, "turns": [%s]}`, e.ID, strings.Join(turns, ", "))
	case mode != "":
		return fmt.Sprintf(`{"id": %q, "score": %v, "answer": "%d vowels", "turns": [%s]}`, e.ID, float64(vowels)/4, vowels,
			strings.Join(turns, ", "))
	case len(e.Prompt)%2 == 0:
		return fmt.Sprintf(`{"id": %q}`, e.ID)
	default:
		return fmt.Sprintf(`{"id": %q, "score": %v, "answer": "%d vowels"}`, e.ID, float64(vowels)/4, vowels)
	}
}

// askPolicy returns what the policy says, or an empty text where the conversation has no room left.
func askPolicy(base string, messages any) string {
	said, _ := answerOf(base, messages)
	return said
}

// answerOf returns what the policy says, which may be nothing, and whether the conversation has room for it.
func answerOf(base string, messages any) (said string, ok bool) {
	b, err := json.Marshal(map[string]any{"messages": messages, "model": "any"})
	if err != nil {
		panic(err)
	}
	r, err := http.Post(base+"/chat/completions", "application/json", bytes.NewReader(b))
	if err != nil {
		panic(err)
	}
	defer r.Body.Close()
	if b, err = io.ReadAll(r.Body); err != nil {
		panic(err)
	}
	var a struct {
		Choices []struct{ Message struct{ Content string } }
		Error   struct{ Code string }
	}
	if err := json.Unmarshal(b, &a); err != nil || a.Choices == nil && a.Error.Code != "context_length_exceeded" {
		panic(fmt.Sprintf("%s: %v", b, err))
	}
	if a.Choices == nil {
		return "", false
	}
	return a.Choices[0].Message.Content, true
}

// agentSets are the settings of a run with an agent in chats.
func agentSets(t *testing.T, more ...string) []string {
	t.Helper()
	template := filepath.Join(t.TempDir(), "chat.jinja")
	text := "{% for m in messages %}[{{ m.role }}] {{ m.content }}<|endoftext|>{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}"
	if err := os.WriteFile(template, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return append([]string{"rollout.tools={kind: agent, command: [" + os.Args[0] + ", agent-program], max_turns: 3, workers: 1}",
		"tokenizer={kind: file, path: ../../configs/tokenizers/stories}", "data.chat=" + template, "data.max_prompt_tokens=96",
		"rollout.max_new_tokens=100", "eval.final.max_new_tokens=100", "model.arch.max_positions=200", "store.samples.train=all", "store.samples.eval=all",
		"rollout.temperature=3", "eval.final.temperature=3", "compute.micro_batch_tokens=4096", "sft.steps=4"}, more...)
}

// A run learns from all conversations of its agent's episodes. Its record has their prompts, and it can be verified.
func TestAgentConversations(t *testing.T) {
	sets := agentSets(t, "rollout.tools.command=["+os.Args[0]+", agent-program, delegates]", "rollout.tools.max_turns=5",
		"rollout.tools.conversations=all", "rollout.tools.max_conversations=2", "rollout.tools.workers=3", "algo.kind=gigpo")
	l := newLab(t)
	res, _ := l.execute(l.plan(1, sets...))
	l.samplesAgain(l.plan(1, sets...))
	if v := l.verify(l.plan(1, sets...), VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("%+v", v.Findings)
	}
	for _, scope := range []string{"train", "eval"} {
		list, _, err := recorded.Completions{DB: l.db, Run: res.Run, Query: store.SampleQuery{Scope: scope}}.Read(context.Background(), 0)
		if err != nil {
			t.Fatal(err)
		}
		several, graded := 0, 0
		earned := 0.0
		for _, c := range list {
			if len(c.Acts) != 1+len(c.Inserted)+len(c.Later) || c.Acts[0].State != ident.Sum([]byte("0")).String() {
				t.Fatalf("%s, sample %d: turns %+v", c.Item, c.K, c.Acts)
			}
			earned += c.Acts[len(c.Acts)-1].Reward
			if len(c.Later) == 0 {
				continue
			}
			several++
			x := c.Later[0]
			parts := c.Parts()
			at := slices.IndexFunc(parts, func(p recorded.Part) bool { return p.Prompt })
			if len(c.Later) > 1 || x.Start <= 0 || x.Start >= len(c.TokenIDs) || at != len(parts)-2 || parts[at].Text != x.Text ||
				!strings.HasPrefix(x.Text, "[user] check ") || !strings.HasSuffix(x.Text, "[assistant] ") {
				t.Fatalf("%s, sample %d: %+v, %+v", c.Item, c.K, c.Later, parts)
			}
			if last := parts[at-1].Text; c.Reason != "as the agent says" {
				graded++
				if !strings.Contains(last, c.Answer) {
					t.Errorf("%s, sample %d: the grader read %q, the last turn is %q", c.Item, c.K, c.Answer, last)
				}
			}
		}
		if earned == 0 {
			t.Errorf("%s: no last turn earned anything", scope)
		}
		if several < len(list)/4 || graded == 0 {
			t.Errorf("%s: %d of %d episodes have several conversations, the task's grader judged %d", scope, several, len(list), graded)
		}
	}
}

// A run with an agent has the same bits however many episodes are played at once, by one process or several, and
// however the sampler is sized. Its
// record has the agent's prompts and verdicts, and it can be verified.
func TestAgent(t *testing.T) {
	sets := agentSets(t)
	a, res := sameRun(t, func(l *lab) *plan.Run { return l.plan(1, sets...) }, func(l *lab) *plan.Run {
		return l.plan(1, append(sets, "rollout.tools.workers=2", "rollout.tools.episodes=4", "rollout.max_sequences=5", "rollout.cache_tokens=416")...)
	})
	if n, m := inserted(t, a, res.Run); n == 0 || m == 0 {
		t.Errorf("the agent went on %d times in training, %d in the evaluation", n, m)
	}
	a.samplesAgain(a.plan(1, sets...))
	if v := a.verify(a.plan(1, sets...), VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("%+v", v.Findings)
	}
	graded, scored := 0, 0
	for _, scope := range []string{"train", "eval"} {
		list, _, err := recorded.Completions{DB: a.db, Run: res.Run, Query: store.SampleQuery{Scope: scope}}.Read(context.Background(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			if !strings.HasPrefix(c.Prompt, "[system] count<|endoftext|>[user] ") || !strings.HasSuffix(c.Prompt, "<|endoftext|>[assistant] ") {
				t.Fatalf("prompt %q", c.Prompt)
			}
			for _, part := range c.Parts() {
				if part.Tool && !strings.HasPrefix(part.Text, "[user] ") && !strings.HasSuffix(part.Text, " is few[assistant] ") {
					t.Fatalf("%s, sample %d: the agent wrote %q", c.Item, c.K, part.Text)
				}
			}
			last := c.Parts()[len(c.Parts())-1].Text
			said := c.Reason == "as the agent says"
			problem := strings.TrimSuffix(strings.TrimPrefix(c.Prompt, "[system] count<|endoftext|>[user] "), "<|endoftext|>[assistant] ")
			switch {
			case said != (len(problem)%2 == 1):
				t.Errorf("%s, sample %d of %s: verdict by the agent: %v", c.Item, c.K, scope, said)
			case c.Correct == nil:
				t.Errorf("%s, sample %d: %q is not graded: %s", c.Item, c.K, last, c.Reason)
			case said && c.Answer != fmt.Sprintf("%d vowels", int(math.Round(4*c.Reward))):
				t.Errorf("%s, sample %d: reward %v, answer %q", c.Item, c.K, c.Reward, c.Answer)
			case said:
				scored++
			default:
				graded++
			}
		}
	}
	if scored == 0 || graded == 0 {
		t.Errorf("the agent scored %d completions, the task's grader %d", scored, graded)
	}
	if other := a.plan(1, append(sets, "rollout.tools.conversations=last")...); other.RID == res.Run.RID {
		t.Error("other conversations are the same run")
	}
}

// A run with an agent that is stopped goes on to the bits of an undisturbed run, also where completions wait to be
// learned.
func TestAgentGoesOn(t *testing.T) {
	sets := agentSets(t, "rollout.staleness=1", "rollout.tools.workers=1", "rollout.tools.episodes=6", "rollout.tools.command=["+os.Args[0]+", agent-program, fails]",
		"data.pass_rate={samples: 2, max: 1}", "algo.kind=gigpo", "eval.final.suites=[]", "eval.online.every_steps=0")
	whole := newLab(t)
	res, _ := whole.execute(whole.plan(0, sets...))
	l := newLab(t)
	ctx, cancel := context.WithCancel(context.Background())
	_, err := l.try(ctx, l.plan(0, sets...), &quiet{progress: func(stage string, done int) {
		if stage == "train" && done == 2 {
			cancel()
		}
	}})
	var e *InterruptedError
	if !errors.As(err, &e) || e.Stage != "train" {
		t.Fatalf("stopped with %v", err)
	}
	done, _ := l.execute(l.plan(0, sets...))
	if done.Run.Chain != res.Run.Chain {
		t.Errorf("chain %s, want %s", done.Run.Chain.Short(), res.Run.Chain.Short())
	}
	sameOutputs(t, l.outputs(done.Run.ID), whole.outputs(res.Run.ID))
	list, _, err := recorded.Completions{DB: l.db, Run: done.Run, Query: store.SampleQuery{Scope: "train"}}.Read(context.Background(), 0)
	failed := 0
	for _, c := range list {
		if c.Correct == nil {
			failed++
			if c.Reason != "the agent: z is not playable" {
				t.Errorf("not graded: %s", c.Reason)
			}
		}
	}
	if err != nil || failed == 0 || failed > len(list)/10 {
		t.Errorf("%d of %d episodes failed: %v", failed, len(list), err)
	}
}

// An evaluation with too many failed episodes keeps none, and goes on when its limit allows them.
func TestAgentFailsEvaluation(t *testing.T) {
	sets := agentSets(t, "rollout.tools.episodes=6", "rollout.tools.command=["+os.Args[0]+", agent-program, fails]",
		"eval.online.every_steps=0", "train.steps=1")
	l := newLab(t)
	_, err := l.try(context.Background(), l.plan(1, append(sets, "eval.final.max_not_graded=0")...), &quiet{})
	var few *eval.NotGradedError
	if !errors.As(err, &few) || !few.Episodes || few.Reason != "the agent: z is not playable" ||
		!strings.HasSuffix(few.Hint(), "eval.final.max_not_graded sets the limit") {
		t.Fatalf("error %v", err)
	}
	res, _ := l.execute(l.plan(1, append(sets, "eval.final.max_not_graded=50%")...))
	list, _, err := recorded.Completions{DB: l.db, Run: res.Run, Query: store.SampleQuery{Scope: "eval"}}.Read(context.Background(), 0)
	failed := 0
	for _, c := range list {
		if c.Correct == nil {
			failed++
		}
	}
	if err != nil || failed != few.NotGraded {
		t.Errorf("%d of %d episodes failed, %d before: %v", failed, len(list), few.NotGraded, err)
	}
}

// A completion whose turns earned something else, or in another state, is not the recorded one.
func TestTurnsDiffer(t *testing.T) {
	acts := []rollout.Act{{End: 1, Reward: 0.5, State: "a"}, {Start: 1, End: 2, State: "b", Conversation: "n"}}
	c := rollout.Completion{Tokens: []int32{1, 2}, LogProbs: []float32{-1, -1}, Finish: rollout.FinishStop, Acts: acts}
	k := keptRollout{text: keptOf(&c), row: store.Sample{Finish: "stop"}}
	if d, err := k.compare(&c); d != nil || err != nil {
		t.Errorf("the same: %v, %v", d, err)
	}
	for _, change := range []func(a *rollout.Act){func(a *rollout.Act) { a.Reward = 0.25 }, func(a *rollout.Act) { a.State = "c" }} {
		c.Acts = slices.Clone(acts)
		change(&c.Acts[1])
		if d, err := k.compare(&c); d == nil || d.Field != "turns" || d.Want == d.Got || err != nil {
			t.Errorf("%+v: %v, %v", c.Acts, d, err)
		}
	}
}

// A program that ends at once is found before any work.
func TestAgentEnds(t *testing.T) {
	l := newLab(t)
	_, err := l.try(context.Background(), l.plan(1, "rollout.tools={kind: agent, command: [sh, -c, exit 3]}"), &quiet{})
	if err == nil || !strings.Contains(err.Error(), "agent sh: it ended (exit status 3) before any episode") {
		t.Errorf("error %v", err)
	}
}
