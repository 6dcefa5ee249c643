package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"exp/train/rollout"
	"exp/train/toolcall"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent-program" {
		obey()
		return
	}
	os.Exit(m.Run())
}

// obey is an agent that does what a problem's prompt says, word by word: ask and more ask the policy and continue,
// score ends, other words name faults. It plays episodes as they come.
func obey() {
	in := bufio.NewScanner(os.Stdin)
	var open sync.WaitGroup
	o := &obedient{}
	for in.Scan() {
		var t task
		if err := json.Unmarshal(in.Bytes(), &t); err != nil {
			panic(err)
		}
		open.Go(func() { o.play(&t) })
	}
	open.Wait()
}

type obedient struct {
	mu  sync.Mutex // of the output
	met atomic.Int32
}

func (o *obedient) play(t *task) {
	say := func(format string, args ...any) { o.mu.Lock(); defer o.mu.Unlock(); fmt.Printf(format+"\n", args...) }
	var messages []map[string]any
	for _, word := range strings.Fields(t.Prompt) {
		if fields, ok := strings.CutPrefix(word, "say:"); ok {
			say(`{"id": %q, %s}`, t.ID, fields)
		}
		switch word {
		case "ask":
			messages = append(messages, map[string]any{"role": "user", "content": fmt.Sprintf("q%d", len(messages))})
			status, body := post(t.BaseURL+"/chat/completions", map[string]any{"model": t.Model, "messages": messages})
			if status != http.StatusOK {
				say(`{"id": %q, "error": %q}`, t.ID, body)
				return
			}
			var a struct {
				Choices []struct{ Message map[string]any }
			}
			if err := json.Unmarshal([]byte(body), &a); err != nil {
				panic(err)
			}
			messages = append(messages, map[string]any{"role": "assistant", "content": a.Choices[0].Message["content"]})
		case "image": // and goes on if it is refused
			post(t.BaseURL+"/chat/completions", map[string]any{"model": t.Model, "messages": json.RawMessage("[" + t.Gold + "]")})
		case "end":
			say(`{"id": %q}`, t.ID)
		case "score":
			say(`{"id": %q, "score": 0.25, "answer": %q}`, t.ID, t.Gold)
		case "right":
			say(`{"id": %q, "score": 0.25, "correct": true}`, t.ID)
		case "die":
			fmt.Fprintln(os.Stderr, "no life left")
			os.Exit(3)
		case "cite":
			fmt.Fprintln(os.Stderr, "400 messages must be a list of messages, objects with role")
			os.Exit(4)
		case "once": // the process that is asked first dies
			if _, err := os.Stat(t.Gold); err != nil {
				_ = os.WriteFile(t.Gold, nil, 0o666)
				os.Exit(1)
			}
		case "meet": // until four episodes have come here, in every process
			for o.met.Add(1); o.met.Load() < 4; {
				time.Sleep(time.Millisecond)
			}
		case "slow":
			time.Sleep(400 * time.Millisecond)
		case "hang":
			time.Sleep(time.Hour)
		case "fail":
			say(`{"id": %q, "error": "the site is down"}`, t.ID)
		case "chat":
			say("thinking …")
		case "other":
			say(`{"id": "x"}`)
		case "half":
			say(`{"id": %q, "correct": true}`, t.ID)
		}
	}
}

func post(url string, body map[string]any) (status int, answer string) {
	b, _ := json.Marshal(body)
	r, err := http.Post(url, "application/json", bytes.NewReader(b))
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close()
	b, _ = io.ReadAll(r.Body)
	return r.StatusCode, string(b)
}

// Tokens of these tests are bytes: 0 ends a turn. A chat is written [role]text, and the assistant speaks after >.
func bytesOf(text string) (ids []int32) {
	for _, b := range []byte(text) {
		ids = append(ids, int32(b))
	}
	return ids
}

func written(list []rollout.Message) string {
	var b strings.Builder
	for _, m := range list {
		fmt.Fprintf(&b, "[%s]%s", m.Role, m.Content)
		for _, f := range m.More {
			if f.Name == "tool_calls" {
				b.Write(f.Value)
			}
		}
	}
	return b.String()
}

func options(prompt ...string) Options {
	calls, _ := toolcall.SyntaxNamed(toolcall.Hermes)
	return Options{Argv: append([]string{os.Args[0], "agent-program"}, prompt...), DataSource: "math", Workers: 3, Each: 1, Limit: 5 * time.Second,
		Retries: 1, MaxTurns: 4, MaxPrompt: 60, Calls: calls, Ends: []int32{0}, Chats: true,
		Chat: func(list []rollout.Message, tools json.RawMessage, _ ...rollout.Picture) ([]int32, string, error) {
			text := string(tools) + written(list) + ">"
			if strings.Contains(text, "unwritable") {
				return nil, "", errors.New("the template raises")
			}
			return bytesOf(text), text, nil
		},
		Reply: func(end int32, _ []toolcall.Call, list []rollout.Message, _ int, _ ...rollout.Picture) ([]int32, error) {
			return bytesOf(fmt.Sprintf("(%d)%s>", end, written(list))), nil
		},
		Text: func(text string) ([]int32, error) { return bytesOf(text), nil },
		Inserted: func(text string) ([]int32, error) {
			return bytesOf(text), nil
		},
		Piece: func(id int32) []byte {
			if id == 0 {
				return nil
			}
			return []byte{byte(id)}
		},
		Seed: func(root uint64, label string) uint64 { return 100*root + uint64(label[len(label)-1]-'0') },
	}
}

// asked is what the policy was asked.
type asked struct {
	prompt string
	seed   uint64
	params rollout.Params
}

// policy answers with texts in order, each but cut off ones ended by token 0.
type policy struct {
	mu    sync.Mutex
	says  []string
	asked []asked
	wait  chan struct{} // nil: it does not wait
}

func (p *policy) ask(ctx context.Context, prompt []int32, seed uint64, params rollout.Params) (c rollout.Completion, err error) {
	var b []byte
	for _, id := range prompt {
		b = append(b, byte(id))
	}
	p.mu.Lock()
	p.asked = append(p.asked, asked{string(b), seed, params})
	n := len(p.asked)
	p.mu.Unlock()
	if p.wait != nil {
		select {
		case <-p.wait:
		case <-ctx.Done():
			return c, context.Cause(ctx)
		}
	}
	text := p.says[(n-1)%len(p.says)]
	c.Finish = rollout.FinishStop
	c.Tokens = append(bytesOf(text), 0)
	for _, stop := range params.Stop {
		if before, _, found := strings.Cut(text, stop); found {
			c.Tokens, text = bytesOf(before+stop), before
		}
	}
	if len(c.Tokens) > params.MaxNewTokens {
		c.Tokens, text, c.Finish = c.Tokens[:params.MaxNewTokens], text[:params.MaxNewTokens], rollout.FinishLength
	}
	c.Text = text
	for i := range c.Tokens {
		c.LogProbs, c.Entropies = append(c.LogProbs, -float32(i)-1), append(c.Entropies, 1)
	}
	return c, nil
}

func episodeOf(p *policy, prompt, gold string) rollout.Episode {
	return rollout.Episode{Problem: &rollout.Problem{ID: "p1", Prompt: prompt, Answer: gold}, Seed: 10,
		Params: rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 100, MinNewTokens: 2, Stop: []string{"run's"}}, Ask: p.ask}
}

func TestPlay(t *testing.T) {
	var log []string
	o := options()
	o.Log = func(line string) { log = append(log, line) }
	a := New(o)
	once := filepath.Join(t.TempDir(), "once")
	const refused = `{"content": "no role"}`
	for _, c := range []struct {
		prompt, gold string
		text, asked  string // of the completion
		said         string
	}{
		{"ask end", "", "yes", "[user]q0>", "<nil>"},
		{"ask ask score", "7", "yes(0)[user]q2>no", "[user]q0>", `graded false 0.25 "7" as the agent says`},
		{"ask right", "", "yes", "[user]q0>", `graded true 0.25 "" as the agent says`},
		{"end", "", "", "", `not graded false 0 "" the agent asked the policy nothing`},
		{"ask fail", "", "yes", "[user]q0>", `not graded false 0 "" the agent: the site is down`},
		{"ask die", "", "no", "[user]q0>", `not graded false 0 "" the agent failed: it ended (exit status 3) before it ` +
			"answered; it said: no life left"},
		{"ask image die", refused, "no", "[user]q0>", `not graded false 0 "" the agent failed: it ended (exit status 3) ` +
			"before it answered; it said: no life left; its last request was refused: messages must be a " +
			`list of messages, objects with role and content, not [{"content":"no role"}]`},
		{"ask image cite", refused, "no", "[user]q0>", `not graded false 0 "" the agent failed: it ended (exit status 4) ` +
			"before it answered; it said: 400 messages must be a list of messages, objects with role"},
		{"image ask die", refused, "no", "[user]q0>", `not graded false 0 "" the agent failed: it ended (exit status 3) ` +
			"before it answered; it said: no life left"},
		{"ask once ask end", once, "no(0)[user]q2>yes", "[user]q0>", "<nil>"}, // the second try has the policy's second answer first
		{"ask ask ask ask ask end", "", "", "", ""},
	} {
		p := &policy{says: []string{"yes", "no"}}
		got, err := a.Play(context.Background(), episodeOf(p, c.prompt, c.gold))
		if err != nil {
			t.Errorf("%s: %v", c.prompt, err)
			continue
		}
		if c.prompt == "ask ask ask ask ask end" {
			const why = "the policy has had 4 turns, all of rollout.tools.max_turns"
			if v := got.AgentVerdict; got.Finish != rollout.FinishTurns || got.Turns() != 4 || v == nil || !strings.Contains(v.Reason, why) {
				t.Errorf("%s: %+v", c.prompt, got)
			}
			continue
		}
		prompt := ""
		if got.Asked != nil {
			prompt = got.Asked.Text
			if !slices.Equal(got.Asked.Tokens, bytesOf(prompt)) {
				t.Errorf("%s: prompt %q has tokens %v", c.prompt, prompt, got.Asked.Tokens)
			}
		}
		said := "<nil>"
		if v := got.AgentVerdict; v != nil {
			said = fmt.Sprintf("%v %v %v %q %s", v.Status, v.Correct, v.Reward, v.Answer, v.Reason)
			if v.Basis != rollout.BasisUnsaid || v.Components != nil {
				t.Errorf("%s: %+v", c.prompt, v)
			}
		}
		if got.Finish != rollout.FinishStop { // also of nothing: the store knows no other word
			t.Errorf("%s: finish %v", c.prompt, got.Finish)
		}
		if got.Text != c.text || prompt != c.asked || said != c.said || len(got.LogProbs) != len(got.Tokens) || got.Check() != nil {
			t.Errorf("%s: %q after %q, %s; want %q after %q, %s", c.prompt, got.Text, prompt, said, c.text, c.asked, c.said)
		}
	}
	for prompt, want := range map[string]string{"ask chat": `is not JSON such as {"id": …, "score": 1}; everything else belongs on standard error, while the episode with id`,
		"ask other": "has another id", "ask half": `has "correct" without "score"`} {
		_, err := a.Play(context.Background(), episodeOf(&policy{says: []string{"yes"}}, prompt, ""))
		var broken *BrokenError
		if !errors.As(err, &broken) || broken.ExitCode() != 8 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", prompt, err, want)
		}
	}
	if n := a.Episodes(); n != 3 {
		t.Errorf("%d episodes at once, want 3", n)
	}
	if len(a.open) != 0 {
		t.Errorf("%d episodes are open", len(a.open))
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if !slices.Contains(log, "no life left") {
		t.Errorf("log %q", log)
	}
}

func TestPlayEnds(t *testing.T) {
	o := options()
	o.Limit, o.Retries = 100*time.Millisecond, 0
	a := New(o)
	got, err := a.Play(context.Background(), episodeOf(&policy{says: []string{"yes"}}, "ask hang", ""))
	if err != nil || got.AgentVerdict == nil || got.AgentVerdict.Status != rollout.NotGraded || !strings.Contains(got.AgentVerdict.Reason, "within 100ms (rollout.tools.limit)") {
		t.Errorf("an agent that hangs: %+v, %v", got.AgentVerdict, err)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	if _, err := a.Play(ctx, episodeOf(&policy{says: []string{"yes"}}, "ask hang", "")); !errors.Is(err, why) {
		t.Errorf("cancelled: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	a = New(o)
	e := episodeOf(&policy{}, "ask end", "")
	e.Problem.Data = json.RawMessage("{")
	var broken *BrokenError
	if _, err := a.Play(context.Background(), e); err == nil || errors.As(err, &broken) || !strings.HasPrefix(err.Error(), "problem p1: json: ") {
		t.Errorf("a problem that is not JSON: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	o.Argv = []string{"/no/such/agent"}
	a = New(o)
	if _, err := a.Play(context.Background(), episodeOf(&policy{}, "ask", "")); err == nil || !strings.HasPrefix(err.Error(), "agent /no/such/agent: ") {
		t.Errorf("no program: %v", err)
	}
	if err := a.Try(time.Second); err == nil || !strings.HasPrefix(err.Error(), "agent /no/such/agent: ") {
		t.Errorf("no program: %v", err)
	}
	o.Argv = []string{"sh", "-c", "echo no model >&2; exit 4"}
	if err := New(o).Try(time.Minute); err == nil || !strings.Contains(err.Error(), "it ended (exit status 4) before any episode; it said: no model") {
		t.Errorf("a program that ends: %v", err)
	}
	if err := New(options()).Try(20 * time.Millisecond); err != nil {
		t.Errorf("a program that waits: %v", err)
	}
}

// The policy's time is not the agent's.
func TestSlowPolicy(t *testing.T) {
	t.Parallel()
	o := options()
	o.Limit, o.Retries = 2*time.Second, 0 // enough for the program to start
	a := New(o)
	p := &policy{says: []string{"yes"}, wait: make(chan struct{})}
	time.AfterFunc(o.Limit+300*time.Millisecond, func() { close(p.wait) })
	if got, err := a.Play(context.Background(), episodeOf(p, "ask end", "")); err != nil || got.AgentVerdict != nil || got.Text != "yes" {
		t.Errorf("%+v, %v", got, err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// playTogether plays an episode for each prompt at once, and returns what each asked and what came of it.
func playTogether(t *testing.T, a *Agent, prompts ...string) ([]*policy, []rollout.Completion) {
	t.Helper()
	asked, out := make([]*policy, len(prompts)), make([]rollout.Completion, len(prompts))
	var all sync.WaitGroup
	for i, prompt := range prompts {
		asked[i] = &policy{says: []string{fmt.Sprintf("mine%d", i), "next"}}
		all.Go(func() {
			var err error
			if out[i], err = a.Play(context.Background(), episodeOf(asked[i], prompt, "")); err != nil {
				t.Errorf("%s: %v", prompt, err)
			}
		})
	}
	all.Wait()
	return asked, out
}

// TestEpisodesOfAProcess: a process that plays four episodes at once plays each as if alone.
func TestEpisodesOfAProcess(t *testing.T) {
	o := options()
	o.Workers, o.Each = 1, 4
	a := New(o)
	if n := a.Episodes(); n != 4 {
		t.Errorf("%d episodes at once, want 4", n)
	}
	asked, out := playTogether(t, a, slices.Repeat([]string{"ask meet ask end"}, 4)...)
	for i, p := range asked {
		if want := fmt.Sprintf("mine%d(0)[user]q2>next", i); out[i].Text != want || out[i].AgentVerdict != nil {
			t.Errorf("%+v, want %q", out[i], want)
		}
		if len(p.asked) != 2 || p.asked[0].seed != 10 || p.asked[1].seed != 1001 {
			t.Errorf("asked %+v", p.asked)
		}
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// TestNeighbours: an episode that ends its process makes its neighbours begin again, and fails alone.
func TestNeighbours(t *testing.T) {
	const ends = "it ended (exit status 3) before it answered; it said: no life left"
	for fault, why := range map[string]string{"die": "the agent failed: " + ends,
		"hang": "the agent failed: it gave no answer within 3s (rollout.tools.limit)"} {
		t.Run(fault, func(t *testing.T) {
			o := options()
			o.Workers, o.Each, o.Limit = 1, 3, 3*time.Second
			if fault == "hang" {
				o.Retries = 0 // the neighbours need none
			} else {
				o.Limit = time.Minute
			}
			a := New(o)
			for tries := 0; tries < 5; tries++ { // a busy machine may take longer than the limit to start the process
				if c, _ := a.Play(context.Background(), episodeOf(&policy{}, "end", "")); c.AgentVerdict.Reason == "the agent asked the policy nothing" {
					break
				}
			}
			// The neighbours wait for the policy meanwhile, for which no limit counts.
			turn := make(chan struct{})
			p := &policy{says: []string{"mine"}, wait: turn}
			bad := &policy{says: []string{"bad"}}
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() {
					if c, err := a.Play(context.Background(), episodeOf(p, "ask end", "")); err != nil || c.Text != "mine" || c.AgentVerdict != nil {
						t.Errorf("a neighbour: %+v, %v", c, err)
					}
				})
			}
			asked := func(n int) {
				for have := 0; have < n && !t.Failed(); time.Sleep(time.Millisecond) {
					p.mu.Lock()
					have = len(p.asked)
					p.mu.Unlock()
				}
			}
			asked(2)
			all.Go(func() {
				asked(3) // one has begun again
				close(turn)
			})
			c, err := a.Play(context.Background(), episodeOf(bad, "ask "+fault, ""))
			all.Wait()
			if v := c.AgentVerdict; err != nil || v == nil || v.Reason != why || c.Text != "bad" {
				t.Errorf("the one that is bad: %+v, %v", v, err)
			}
			if len(p.asked) < 4 || len(bad.asked) != 1+o.Retries {
				t.Errorf("neighbours asked %d times, the bad one %d times", len(p.asked), len(bad.asked))
			}
			for _, x := range p.asked {
				if x.seed != 10 || x.prompt != "[user]q0>" {
					t.Errorf("asked %+v", x)
				}
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestStrayLinesOfMany: a line that ends no open episode is an error of all that the process plays.
func TestStrayLinesOfMany(t *testing.T) {
	o := options()
	o.Workers, o.Each = 1, 4
	a := New(o)
	var all sync.WaitGroup
	for _, prompt := range []string{"ask hang", "ask hang", "ask hang", "ask slow other"} {
		all.Go(func() {
			_, err := a.Play(context.Background(), episodeOf(&policy{says: []string{"yes"}}, prompt, ""))
			var broken *BrokenError
			const want = `line 1 of its output has another id, "x", while 4 episodes are open, with ids 1, 2, 3, 4: {"id": "x"}`
			if !errors.As(err, &broken) || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s: %v", prompt, err)
			}
		})
	}
	all.Wait()
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// TestAlwaysDies: a program that dies in every episode is given up long before all episodes were tried. Where its last
// request was refused, the error says why.
func TestAlwaysDies(t *testing.T) {
	o := options()
	o.Workers, o.Retries = 2, 2
	a := New(o)
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	tries := &policy{says: []string{"yes"}}
	left := make(chan int, 100)
	for i := range 100 {
		left <- i
	}
	close(left)
	var all sync.WaitGroup
	for range a.Episodes() {
		all.Go(func() {
			for range left {
				if _, err := a.Play(ctx, episodeOf(tries, "ask image die", `{"content": "no role"}`)); err != nil {
					stop(err)
				}
			}
		})
	}
	all.Wait()
	var broken *BrokenError
	const want = "it died or fell silent 8 times, further tries not counted, and no episode ended in between; the last time it ended (exit status 3) before it answered; it said: no life left; its last request was refused: messages must be a list"
	if err := context.Cause(ctx); !errors.As(err, &broken) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if n := len(tries.asked); n < deaths || n > deaths*(o.Retries+1) {
		t.Errorf("%d tries, want %d at most", n, deaths*(o.Retries+1))
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// TestEpisodesTogether: the answers to requests of many episodes at once stay apart.
func TestEpisodesTogether(t *testing.T) {
	a := New(options())
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			p := &policy{says: []string{fmt.Sprintf("mine%d", i), "next"}}
			got, err := a.Play(context.Background(), episodeOf(p, "ask ask end", ""))
			if want := fmt.Sprintf("mine%d(0)[user]q2>next", i); err != nil || got.Text != want {
				t.Errorf("%q, %v, want %q", got.Text, err, want)
			}
			if len(p.asked) != 2 || p.asked[0].seed != 10 || p.asked[1].seed != 1001 || p.asked[1].prompt != fmt.Sprintf("[user]q0>mine%d\x00(0)[user]q2>", i) {
				t.Errorf("asked %+v", p.asked)
			}
		})
	}
	all.Wait()
	if len(a.open) != 0 {
		t.Errorf("%d episodes are open", len(a.open))
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}
