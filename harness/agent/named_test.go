package agent

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"exp/train/rollout"

	"github.com/google/go-cmp/cmp"
)

// hashed is the seed of a label.
func hashed(root uint64, label string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%s", root, label)
	return h.Sum64()
}

// namedBy opens an episode whose policy says something of its own for each prompt and seed. meet, unless nil, is called
// first.
func namedBy(t *testing.T, o Options, meet func()) *played {
	t.Helper()
	o.Seed = hashed
	a := New(o)
	e := episodeOf(&policy{}, "", "")
	e.Ask = func(ctx context.Context, ids []int32, seed uint64, p rollout.Params) (c rollout.Completion, err error) {
		if meet != nil {
			meet()
		}
		if err := ctx.Err(); err != nil {
			return c, err
		}
		c.Text = fmt.Sprintf("%d", hashed(seed, string(byteText(ids)))%1000)
		c.Tokens, c.Finish = append(bytesOf(c.Text), 0), rollout.FinishStop
		c.LogProbs, c.Entropies = make([]float32, len(c.Tokens)), make([]float32, len(c.Tokens))
		return c, nil
	}
	s, err := a.begin(context.Background(), e).strand("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.end(); _ = a.Close() })
	return &played{s, t, nil}
}

func byteText(ids []int32) (b []byte) {
	for _, id := range ids {
		b = append(b, byte(id))
	}
	return b
}

// say asks for a text within a conversation, and returns it with the answer.
func (x *played) say(name, text string) string {
	x.t.Helper()
	got, why := first(x.post("completions", fmt.Sprintf(`{"prompt": %q, "metadata": {"conversation": %q}}`, text, name)))
	if why != "stop" {
		x.t.Errorf("%s in %s: %s, %s", text, name, got, why)
	}
	return text + got
}

func manyNames() Options {
	o := options()
	o.Conversations, o.MaxConversations, o.MaxTurns = All, 4, 3
	return o
}

// An episode with named conversations is the same in whatever order and how ever many at once its requests come.
func TestNamedConversations(t *testing.T) {
	talk := func(x *played, name string) { x.say(name, x.say(name, "sub"+name[:1])+"?") }
	play := func(order func(x *played)) rollout.Completion {
		x := namedBy(t, manyNames(), nil)
		plan := x.say("", "plan")
		order(x)
		x.say("", plan+" end")
		c := x.end()
		if err := c.Check(); err != nil {
			t.Error(err)
		}
		return c
	}
	want := play(func(x *played) { talk(x, "9"); talk(x, "10"); talk(x, "b") })
	later := want.Later()
	if want.Asked.Text != "plan" || want.Asked.Final != 0 || len(later) != 3 || later[0].Text != "sub9" ||
		later[1].Text != "subb" || later[2].Text != "sub1" || want.Turns() != 8 || want.Finish != rollout.FinishStop {
		t.Fatalf("%+v, %+v", want, want.Asked)
	}
	for name, order := range map[string]func(x *played){
		"another order": func(x *played) { talk(x, "b"); talk(x, "10"); talk(x, "9") },
		"turn by turn": func(x *played) {
			b, nine := x.say("b", "subb"), x.say("9", "sub9")
			ten := x.say("10", "sub1")
			x.say("9", nine+"?")
			x.say("b", b+"?")
			x.say("10", ten+"?")
		},
		"at once": func(x *played) {
			var all sync.WaitGroup
			for _, name := range []string{"10", "9", "b"} {
				all.Go(func() { talk(x, name) })
			}
			all.Wait()
		},
	} {
		if diff := cmp.Diff(want, play(order)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// Named conversations are answered at the same time, and their answers to one prompt differ.
func TestNamedConversationsTogether(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	x := namedBy(t, manyNames(), func() { both.Done(); both.Wait() })
	said := make(chan string, 2)
	for _, name := range []string{"a", "b"} {
		go func() { said <- x.say(name, "same") }()
	}
	if a, b := <-said, <-said; a == b {
		t.Errorf("both say %s", a)
	}
	if c := x.end(); len(c.Later()) != 1 || c.Asked.Final != 1 || c.Check() != nil {
		t.Errorf("%+v, %+v, %v", c, c.Asked, c.Check())
	}
}

func TestNamesRefused(t *testing.T) {
	x := namedBy(t, manyNames(), nil)
	for _, name := range []string{"a", "b", "c"} {
		x.say(name, name)
	}
	refused := func(body, code, want string) {
		t.Helper()
		if got, why := first(x.post("completions", body)); !strings.HasPrefix(got, code) || !strings.Contains(why, want) {
			t.Errorf("%s: %s, %s", body, got, why)
		}
	}
	refused(`{"prompt": "x", "metadata": {"conversation": "a"}}`, "400 other_conversation",
		`each request with the name "a" repeats what was said with it`)
	refused(`{"prompt": "x", "metadata": {"conversation": "`+strings.Repeat("n", 101)+`"}}`, "400",
		strings.Repeat("n", 50)+`…": a name has at most 100 bytes`)
	refused(`{"prompt": "", "metadata": {"conversation": "d"}}`, "400", "it has no tokens") // and takes no room
	if got, why := first(x.post("completions", `{"prompt": "d", "metadata": {"conversation": 3}}`)); why != "stop" {
		t.Errorf("%s, %s", got, why)
	}
	refused(`{"prompt": "x", "metadata": {"conversation": "e"}}`, "400 too_many_conversations",
		"the episode has 4 conversations, all of rollout.tools.max_conversations")
	refused(`{"prompt": "x"}`, "400 too_many_conversations", "the episode has 4 conversations")
	o := manyNames()
	o.Conversations = Last
	x = namedBy(t, o, nil)
	refused(`{"prompt": "x", "metadata": {"conversation": "a"}}`, "400", "rollout.tools.conversations is not all")
	if got, why := first(x.post("completions", `{"prompt": "x", "metadata": {"other": "a"}}`)); why != "stop" {
		t.Errorf("%s, %s", got, why)
	}
	x.end()
	if _, err := x.episode.strand(""); !errors.Is(err, errOver) {
		t.Errorf("an episode that is over: %v", err)
	}
}

// A first answer that the client never gets leaves room for another conversation, and comes again.
func TestNamedAnswerLost(t *testing.T) {
	o := manyNames()
	o.MaxConversations = 1
	x := namedBy(t, o, nil)
	r := httptest.NewRequest(http.MethodPost, "/episode/"+x.key+"/v1/completions",
		strings.NewReader(`{"prompt": "a", "metadata": {"conversation": "n"}}`))
	r.Header.Set("Content-Type", "application/json")
	x.a.server.Handler.ServeHTTP(gone{httptest.NewRecorder()}, r)
	if c := x.completion(); len(c.Tokens) > 0 {
		t.Errorf("%+v", c)
	}
	x.say("m", "a")
	if c := x.end(); c.Asked.Text != "a" || len(c.Later()) > 0 {
		t.Errorf("%+v", c)
	}
}

// An episode ends when the requests that it answers have ended, which are cut short.
func TestNamedEnd(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	x := namedBy(t, manyNames(), func() { entered <- struct{}{}; <-leave })
	answered := make(chan int, 1)
	go func() {
		code, _ := x.post("completions", `{"prompt": "a", "metadata": {"conversation": "n"}}`)
		answered <- code
	}()
	<-entered
	ended := make(chan rollout.Completion)
	go func() { ended <- x.end() }()
	select {
	case c := <-ended:
		t.Errorf("ended while a request is answered: %+v", c)
	case <-time.After(20 * time.Millisecond):
	}
	close(leave)
	if c := <-ended; len(c.Tokens) > 0 {
		t.Errorf("%+v", c)
	}
	if code := <-answered; code != http.StatusGone {
		t.Errorf("status %d", code)
	}
}
