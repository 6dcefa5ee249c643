package generate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/train/model"
	"exp/train/rollout"
)

// oracle answers each a and each end token with letters that follow from the text so far, after a while that does
// not. A text with c before the a gets no answer; one with d in the turn ends the completion.
type oracle struct {
	turns int
	delay func() time.Duration
	fails string // a text whose reply fails
}

func (oracle) Marks() []string { return []string{"a"} }

func (o oracle) Read(t rollout.Turn) rollout.Action {
	turn := t.Text[t.Start:]
	switch {
	case strings.HasSuffix(turn, "ca"), t.End >= 0 && !strings.Contains(turn, "b"):
		return rollout.Action{}
	case t.Number == o.turns:
		return rollout.Action{Over: true}
	}
	return rollout.Action{Reply: func(ctx context.Context) (r rollout.Reply, err error) {
		select {
		case <-time.After(o.delay()):
		case <-ctx.Done():
			return r, ctx.Err()
		}
		if o.fails != "" && strings.Contains(t.Text, o.fails) {
			return r, errors.New("the oracle is mute")
		}
		if strings.Contains(turn, "d") {
			return rollout.Reply{Over: true}, nil
		}
		for i := range len(t.Text) * 7 % 23 { // sometimes nothing
			r.Tokens = append(r.Tokens, int32(1+(int(t.Text[i%len(t.Text)])+i+int(t.Problem.ID[0]))%(toy.Vocab-1)))
		}
		return r, nil
	}}
}

func noDelay() time.Duration { return 0 }

func withProblems(reqs []rollout.Request) []rollout.Request {
	for i := range reqs {
		reqs[i].Problem = &rollout.Problem{ID: fmt.Sprint(i)}
	}
	return reqs
}

// TestTurns: completions with turns have the same bits for any sizing of the engine, any room of the cache and
// any delay of the replies, and the log-probs of the trainer.
func TestTurns(t *testing.T) {
	for i, c := range []model.Config{toy, toy, linearToy()} {
		operand, turns := []kernels.DType{kernels.F32, kernels.BF16}[i%2], []int{4, 4, 3}[i]
		be := openAs(t, cpu.Options{Threads: 2, Operand: operand})
		m := newModel(t, be, c)
		r := rand.New(rand.NewPCG(5, 7))
		reqs := withProblems(requests(r, 6, 5, 30))
		p := rollout.Params{Temperature: 1.5, TopP: 1, MaxNewTokens: 60, Stop: []string{"qq"},
			Environment: oracle{turns, noDelay, ""}}
		large := newEngine(t, be, m, Options{MaxSequences: 30, PageTokens: 16, MaxTokens: 90})
		want := sample(t, large, reqs, p)
		checkTurns(t, want, p.MaxNewTokens)
		lp, h := trainerLogProbs(t, be, m, reqs, want, p.Temperature, 200)
		at := 0
		for i := range want {
			for k := range want[i] {
				c := &want[i][k]
				mask := make([]bool, len(c.Tokens))
				c.Sampled(mask)
				for j := range mask {
					switch {
					case mask[j] && (c.LogProbs[j] != lp[at] || c.Entropies[j] != h[at]):
						t.Fatalf("request %d, completion %d, token %d: sampler %v, %v; trainer %v, %v", i, k, j, c.LogProbs[j], c.Entropies[j], lp[at], h[at])
					case !mask[j] && (c.LogProbs[j] != 0 || c.Entropies[j] != 0):
						t.Fatalf("request %d, completion %d: an inserted token has a log-prob", i, k)
					}
					at++
				}
			}
		}
		p.Environment = oracle{turns, func() time.Duration { return time.Duration(rand.IntN(3000)) * time.Microsecond }, ""}
		for _, o := range []Options{
			{MaxSequences: 1}, {MaxSequences: 3, StepRows: 5}, {MaxSequences: 12, CacheTokens: 160},
			{MaxSequences: 12, CacheTokens: 1, StepRows: 13}, {MaxSequences: 30, CacheTokens: 500},
		} {
			o.PageTokens, o.MaxTokens = 16, 90
			e := newEngine(t, dirty{be}, m, o)
			for range 3 {
				got := sample(t, e, reqs, p)
				for i := range want {
					for k := range want[i] {
						if a, b := bits(got[i][k]), bits(want[i][k]); a != b || fmt.Sprint(got[i][k].Inserted) != fmt.Sprint(want[i][k].Inserted) {
							t.Fatalf("%s, %+v: request %d, completion %d:\n%s\nwant\n%s", operand, o, i, k, a, b)
						}
					}
				}
				if pages := e.pages.available(); pages != o.pages() {
					t.Fatalf("%s, %+v: %d of %d pages are free afterwards", operand, o, pages, o.pages())
				}
				if n := len(e.state.free); n != e.state.slots {
					t.Fatalf("%s, %+v: %d of %d slots of states are free afterwards", operand, o, n, e.state.slots)
				}
			}
			t.Logf("%s %+v: %+v", operand, o, e.Stats())
		}
	}
}

// checkTurns checks the shape of completions with turns, and that all kinds of ends are among them.
func checkTurns(t *testing.T, out [][]rollout.Completion, limit int) {
	t.Helper()
	ends := map[rollout.Finish]int{}
	inserted := 0
	for i := range out {
		for k := range out[i] {
			c := &out[i][k]
			ends[c.Finish]++
			inserted += len(c.Inserted)
			if err := c.Check(); err != nil {
				t.Errorf("request %d, completion %d: %v", i, k, err)
			}
			if len(c.Tokens) > limit || len(c.LogProbs) != len(c.Tokens) {
				t.Errorf("request %d, completion %d: %d tokens", i, k, len(c.Tokens))
			}
			for _, s := range c.Inserted {
				var text []byte
				for _, id := range c.Tokens[s.Start:s.End] {
					text = append(text, letters{}.Piece(id)...)
				}
				if got := c.Text[s.TextStart:s.TextEnd]; got != string(text) {
					t.Errorf("request %d, completion %d: inserted text %q, tokens %q", i, k, got, text)
				}
			}
			if own := c.Own(); len(own.Tokens) != c.SampledTokens() || len(own.LogProbs) != len(own.Tokens) {
				t.Errorf("request %d, completion %d: %d own tokens, want %d", i, k, len(own.Tokens), c.SampledTokens())
			}
			if last := c.LastTurn(); !strings.HasSuffix(c.Text, last.Text) || len(last.Inserted) > 0 {
				t.Errorf("request %d, completion %d: last turn %q of %q", i, k, last.Text, c.Text)
			}
			for _, x := range c.LogProbs {
				if math.IsNaN(float64(x)) {
					t.Errorf("request %d, completion %d: NaN", i, k)
				}
			}
		}
	}
	if ends[rollout.FinishStop] == 0 || ends[rollout.FinishLength] == 0 || ends[rollout.FinishTurns] == 0 || inserted < 15 {
		t.Errorf("ends %v, %d replies: not all cases happen", ends, inserted)
	}
}

// A failing reply ends the call with its error, and no reply is worked on afterwards.
func TestTurnsFail(t *testing.T) {
	be := openCPU(t, 2)
	e := newEngine(t, be, newModel(t, be, toy), Options{MaxSequences: 8, PageTokens: 16, MaxTokens: 90})
	reqs := withProblems(requests(rand.New(rand.NewPCG(5, 7)), 6, 5, 30))
	p := rollout.Params{Temperature: 1.5, TopP: 1, MaxNewTokens: 60,
		Environment: oracle{4, func() time.Duration { return time.Millisecond }, "b"}}
	if _, err := e.Sample(context.Background(), reqs, p, nil); err == nil || !strings.Contains(err.Error(), "the oracle is mute") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.Environment = oracle{4, func() time.Duration { cancel(); return time.Hour }, ""}
	if _, err := e.Sample(ctx, reqs, p, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// A completion that gives its pages back while it waits for a reply, or behind it, finds them when it goes on, if nobody
// needed them.
func TestAwayFindsItsPages(t *testing.T) {
	be := openCPU(t, 1)
	m := newModel(t, be, toy)
	r := rand.New(rand.NewPCG(7, 7))
	for seed := range uint64(20) {
		reqs := withProblems([]rollout.Request{{Prompt: randomTokens(r, 47), Seeds: []uint64{seed}}})
		p := rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 49, Environment: oracle{3, noDelay, ""}}
		o := Options{MaxSequences: 1, PageTokens: 16, MaxTokens: 96}
		want := sample(t, newEngine(t, be, m, o), reqs, p)
		e := newEngine(t, dirty{be}, m, o)
		answers := make(chan bool)
		p.Environment = oracle{3, func() time.Duration { <-answers; return 0 }, ""}
		s := newSchedule(e, reqs, p)
		s.turns = newTurns(t.Context(), p.Environment, s.total, nil)
		times, found := 0, 0
		drew := false // what fills a page before it gives it back
		for !s.finished() {
			wait := !e.advance(s, freely)
			if wait {
				tokens := 46 + len(s.turns.away[0].drawn) // that are in the cache
				before := e.Stats().FoundTokens
				if times%2 == 0 && !s.emptied() {
					t.Fatalf("seed %d: no pages to take", seed)
				}
				drew = drew || times%2 == 0 && tokens >= 48
				answers <- true
				if err := s.takeReplies(t.Context(), true); err != nil {
					t.Fatal(err)
				}
				if s.finished() {
					break
				}
				if times%2 == 1 && !s.takeBack(nil) || e.pages.available() != o.pages() {
					t.Fatalf("seed %d: %d pages are free", seed, e.pages.available())
				}
				e.advance(s, freely)
				times, found = times+1, e.Stats().FoundTokens-before
				if found != tokens/16*16 {
					t.Errorf("seed %d: %d tokens found of %d", seed, found, tokens)
				}
			}
		}
		s.turns.close()
		if a, b := bits(s.out[0][0]), bits(want[0][0]); a != b {
			t.Errorf("seed %d: %s, want %s", seed, a, b)
		}
		if times > 1 && drew {
			return
		}
	}
	t.Error("no completion waits twice, with pages that it has filled")
}
