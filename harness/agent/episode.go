package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"exp/harness/openai"
	"exp/train/rollout"
	"exp/train/toolcall"
)

// episode is one that is played: conversations of a program with the policy.
type episode struct {
	a      *Agent
	e      rollout.Episode
	key    string // of its address
	ctx    context.Context
	cancel context.CancelFunc
	fail   context.CancelCauseFunc // ends the run; nil in tests of conversations

	asking atomic.Int32 // requests that wait for answers
	heard  atomic.Int64 // when the program was last heard of, in nanoseconds of the clock

	refused atomic.Pointer[error] // why the last request had no answer; nil before the first

	mu      sync.Mutex // of what follows
	strands map[string]*strand
	begun   int // conversations, if all are learned from
	over    bool
}

// strand is a part of an episode whose requests are answered one after another: all in a conversation that the
// program names (metadata.conversation), or, with an empty name, all others. Strands do not wait for each other, and
// what comes of one does not depend on others.
type strand struct {
	*episode
	name string
	mu   sync.Mutex // one request at a time
	state
	before state // before the last answer
}

// state holds the progress of a strand.
type state struct {
	talks  []talk         // that are learned from, in the order in which they began
	final  int            // the one with the last turn
	finish rollout.Finish // if nothing follows
	turns  []turn         // of the whole strand, also of conversations that are not learned from
	calls  int            // that the policy's answers made
}

// talk is a conversation and the completion that it makes.
type talk struct {
	said conversation
	c    rollout.Completion
}

// begin opens an episode for requests.
func (a *Agent) begin(ctx context.Context, e rollout.Episode) *episode {
	x := &episode{a: a, e: e, key: rand.Text(), strands: map[string]*strand{}}
	x.ctx, x.cancel = context.WithCancel(ctx)
	x.heard.Store(time.Now().UnixNano())
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open[x.key] = x
	return x
}

// end takes no more requests and returns what was said. It may be called for no episode.
func (x *episode) end() rollout.Completion {
	if x == nil {
		return rollout.Completion{}
	}
	x.a.mu.Lock()
	delete(x.a.open, x.key)
	x.a.mu.Unlock()
	x.cancel()
	x.mu.Lock()
	x.over = true
	x.mu.Unlock()
	return x.completion()
}

// completion returns all conversations of an episode that is over as one completion; the zero value without any.
// Those without a name come first, and one of them has the last turn, if there are any; then the others by name,
// shorter names first.
func (x *episode) completion() rollout.Completion {
	names := slices.SortedFunc(maps.Keys(x.strands), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	var list []rollout.Completion
	var acts []rollout.Act
	var finish rollout.Finish
	final, at := 0, 0
	for _, name := range names {
		s := x.strands[name]
		s.mu.Lock() // its last request has ended
		if own := x.strands[""]; own == nil || s == own || len(own.talks) == 0 {
			final, finish = len(list)+s.final, s.finish
		}
		acts = append(acts, s.acts(at)...)
		for i := range s.talks {
			list = append(list, s.talks[i].c)
			at += len(s.talks[i].c.Tokens)
		}
		s.mu.Unlock()
	}
	c := rollout.Join(list, min(final, max(0, len(list)-1)))
	c.Finish, c.Acts = finish, acts
	if images := x.a.o.Images; images != nil {
		c.NoteImages(func(id int32) (im rollout.ShownImage, ok bool) {
			im, brought, _ := images.Shown(id)
			return im, brought
		})
	}
	return c
}

// refusal says why the last request had no answer, where the program's own words do not; "" if it had one. It may be
// called for no episode.
func (x *episode) refusal(said error) string {
	if x == nil {
		return ""
	}
	err := x.refused.Load()
	if err == nil || *err == nil || errors.Is(*err, context.Canceled) || errors.Is(*err, errOver) {
		return ""
	}
	why := (*err).Error()
	if strings.Contains(said.Error(), why[:min(len(why), 20)]) {
		return ""
	}
	return "; its last request was refused: " + why
}

// images says which images a request may show; nil: none.
func (x *episode) images() *openai.Images {
	if x.a.o.Images == nil {
		return nil
	}
	return &openai.Images{Take: x.take, Film: x.a.o.Images.Film}
}

// take returns the image of a file that a request shows.
func (x *episode) take(encoded []byte) (rollout.Picture, error) {
	pic, err := x.a.o.Images.Take(encoded)
	var unread *ImageError
	if err != nil && !errors.As(err, &unread) && x.fail != nil {
		x.fail(fmt.Errorf("problem %s: an image that the agent brought: %w", x.e.Problem.ID, err))
	}
	return pic, err
}

// mostName is the longest name of a conversation, in bytes.
const mostName = 100

// short returns the beginning of a name.
func short(name string) string {
	if len(name) > mostName {
		return strings.ToValidUTF8(name[:mostName/2], "") + "…"
	}
	return name
}

// strand returns the strand with a name, or with none.
func (x *episode) strand(name string) (*strand, error) {
	if name != "" && x.a.o.Conversations != All {
		return nil, openai.Bad("metadata", "metadata names the conversation %q, and rollout.tools.conversations is "+
			"not all", short(name))
	}
	if len(name) > mostName {
		return nil, openai.Bad("metadata", "metadata names the conversation %q: a name has at most %d bytes",
			short(name), mostName)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return nil, errOver
	}
	s := x.strands[name]
	if s == nil {
		s = &strand{episode: x, name: name}
		x.strands[name] = s
	}
	return s, nil
}

// several reports whether there may be several conversations.
func (x *episode) several() bool { return x.a.o.Conversations == Last || x.a.o.Conversations == All }

// starts counts n further conversations, or fewer if n is negative, if all are learned from. It reports whether there
// may be so many.
func (x *episode) starts(n int) bool {
	if x.a.o.Conversations != All {
		return true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.begun+n > x.a.o.MaxConversations {
		return false
	}
	x.begun += n
	return true
}

// hears notes that the program asks something; the function that it returns, that it has its answer.
func (x *episode) hears() (answered func()) {
	x.asking.Add(1)
	return func() {
		x.heard.Store(time.Now().UnixNano())
		x.asking.Add(-1)
	}
}

// idle returns for how long the program has worked on its own. The policy's time is not the program's: on a slow
// machine an episode is the same.
func (x *episode) idle() time.Duration {
	if x.asking.Load() > 0 {
		return 0
	}
	return time.Duration(time.Now().UnixNano() - x.heard.Load())
}

// answer is what a request gets.
type answer struct {
	text   string
	calls  []toolcall.Call
	first  int // number of the first of them
	turn   int // its number, from 1
	finish string
	prompt int // tokens before it
	tokens int
}

// errOver says that an episode takes no more requests.
var errOver = openai.Coded(http.StatusGone, "invalid_request_error", "episode_over", "the episode is over")

// ask answers a request. If ctx ends, the client has left, and the turn does not count.
func (x *strand) ask(ctx context.Context, r *openai.Request) (*answer, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ctx.Err() != nil {
		return nil, errOver
	}
	if err := x.a.check(r); err != nil {
		return nil, err
	}
	if most := x.a.o.MaxTurns; len(x.turns) >= most {
		x.finish = rollout.FinishTurns
		return nil, openai.Coded(http.StatusBadRequest, "invalid_request_error", "too_many_turns",
			"the policy has had %d turns, all of rollout.tools.max_turns", most)
	}
	s, err := x.next(r)
	if err != nil {
		return nil, err
	}
	turn, prompt, err := x.draw(ctx, r, s)
	if err != nil {
		if s.anew != nil {
			x.starts(-1)
		}
		return nil, err
	}
	x.before = x.state
	x.talks, x.turns = slices.Clone(x.talks), slices.Clone(x.turns)
	if s.anew != nil {
		x.open(s.anew)
	} else {
		x.final = s.talk
	}
	t := &x.talks[x.final]
	t.c.Continue(s.inserted, x.a.text(s.inserted), turn)
	x.turns = append(x.turns, x.turnOf(turn, s.added.state()))
	x.finish = turn.Finish
	out := &answer{text: turn.Text, prompt: prompt, tokens: len(turn.Tokens), turn: len(x.turns), first: x.calls,
		finish: turn.Finish.String()}
	if len(r.Tools) > 0 || r.Chat && x.a.o.Calls.Channels {
		out.call(x.a, r, s, turn)
	}
	out.text = strings.ToValidUTF8(out.text, "\uFFFD") // a turn may end within a character
	x.calls += len(out.calls)
	t.said.add(r, out, x.a.endOf(turn))
	return out, nil
}

// open begins a conversation.
func (x *strand) open(prompt *rollout.Asked) {
	if x.a.o.Conversations == Last {
		x.talks = nil
		for i := range x.turns {
			x.turns[i].talk = -1
		}
	}
	x.talks = append(x.talks, talk{c: rollout.Completion{Asked: prompt}})
	x.final = len(x.talks) - 1
}

// call sets the text and the calls of an answer to a request with tools, and the text of one in channels.
func (out *answer) call(a *Agent, r *openai.Request, s step, turn *rollout.Completion) {
	reader := a.o.Calls.Reader(toolcall.ReaderOptions{Tools: r.Tools, One: r.OneCall,
		Thinking: a.opensThoughts(s), None: len(r.Tools) == 0})
	text, calls := reader.Read(a.spell(turn), true)
	if len(calls) > 0 || a.o.Calls.Channels {
		out.text, out.calls = text, calls
	}
	if len(calls) > 0 && turn.Finish == rollout.FinishStop {
		out.finish = "tool_calls"
	}
}

// opensThoughts reports whether a turn begins within thoughts.
func (a *Agent) opensThoughts(s step) bool {
	if s.anew != nil {
		return toolcall.OpensThoughts(s.anew.Text)
	}
	return toolcall.OpensThoughts(a.text(s.inserted))
}

// spell returns the text of a turn with the marks of calls that are special tokens, which its own text leaves out.
func (a *Agent) spell(turn *rollout.Completion) string {
	if !slices.ContainsFunc(turn.Tokens, func(id int32) bool { return a.o.Spelled[id] != "" }) {
		return turn.Text
	}
	var b strings.Builder
	for _, id := range turn.Tokens {
		b.WriteString(a.o.Spelled[id])
		b.Write(a.o.Piece(id))
	}
	return b.String()
}

// undo takes back an answer that the client never got. One that another answer followed stays: that one's seed and
// number depend on it.
func (x *strand) undo(a *answer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if a.turn == len(x.turns) {
		x.starts(len(x.before.talks) - len(x.talks))
		x.state = x.before
	}
}

// check returns an error for a request that cannot be learned from.
func (a *Agent) check(r *openai.Request) error {
	unfit := func(param, why string) error { return openai.Bad(param, "%s: %s", param, why) }
	const policy = "every answer is drawn from the policy as the run says"
	switch {
	case r.N != 1:
		return unfit("n", "an episode has one answer to each request")
	case r.Scored:
		return unfit("logprobs", "agents get no log-probs")
	case len(r.Params.Bias) > 0:
		return unfit("logit_bias", policy)
	case r.IgnoreEnds:
		return unfit("ignore_eos", policy)
	case len(r.Ends) > 0:
		return unfit("stop_token_ids", policy)
	case r.Echo:
		return unfit("echo", "agents know what they asked")
	case r.Vars != nil:
		return unfit("chat_template_kwargs", "data.template_vars sets them for the whole run")
	case r.Chat && !a.o.Chats:
		return openai.Bad("messages", "the run has no chat template (data.chat): ask /v1/completions")
	case !r.Chat && len(r.Texts) != 1:
		return unfit("prompt", "must be one text")
	}
	return nil
}

// text returns the text of tokens as completions have it, with the names of images.
func (a *Agent) text(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		if a.o.Images != nil {
			if im, _, ok := a.o.Images.Shown(id); ok {
				if id == im.First {
					b.WriteString(im.String())
				}
				continue
			}
		}
		b.Write(a.o.Piece(id))
	}
	return b.String()
}

// endOf returns the token that ended a turn; -1 if none did.
func (a *Agent) endOf(turn *rollout.Completion) int32 {
	last := turn.Tokens[len(turn.Tokens)-1]
	if turn.Finish != rollout.FinishStop || !slices.Contains(a.o.Ends, last) {
		return -1
	}
	return last
}

// step is where a request continues.
type step struct {
	anew     *rollout.Asked // a conversation that begins; nil: one goes on
	talk     int            // the one that goes on
	inserted []int32        // before its turn
	added    more           // by the request
}

// next says where a request continues.
func (x *strand) next(r *openai.Request) (s step, err error) {
	at, added, err := x.continued(r)
	other := func(what string) (step, error) {
		return s, openai.Coded(http.StatusBadRequest, "invalid_request_error", "other_conversation", "%v: %s", err,
			what)
	}
	switch {
	case at < 0 && (len(x.talks) == 0 || x.name == "" && x.several()):
		return x.begins(r, err)
	case at < 0 && x.name != "":
		return other(fmt.Sprintf("each request with the name %q repeats what was said with it", x.name))
	case at < 0:
		return other("an episode is one conversation, in which each request repeats what was said, unless " +
			"rollout.tools.conversations is last or all")
	case r.Chat:
		var list []rollout.Message
		if list, err = openai.ForTemplate(added.messages, x.a.o.Calls.Channels); err == nil {
			talk := &x.talks[at].said
			s.inserted, err = x.a.o.Reply(talk.end, talk.calls(), list, added.before, added.images...)
		}
	case added.text != "":
		s.inserted, err = x.a.o.Inserted(added.text)
	}
	if err != nil {
		return s, unread(r, err)
	}
	s.talk, s.added = at, added
	c := &x.talks[at].c
	if most := x.most(c.Asked); len(s.inserted) >= most-len(c.Tokens) {
		x.finish = rollout.FinishLength
		return s, tooLong("the conversation has %d tokens after its first prompt of %d, this request adds %d, and "+
			"there is room for %d (rollout.max_new_tokens)", len(c.Tokens), len(c.Asked.Tokens), len(s.inserted), most)
	}
	return s, nil
}

// continued returns the number of the conversation that a request continues, and what the request adds. Where several
// fit, it takes the one with the most repeated. If none fits the number is -1, and err says how the newest differs. A
// prompt with an empty answer, asked again, begins another conversation where it may: an agent that asks the same
// several times gets as many answers.
func (x *strand) continued(r *openai.Request) (at int, added more, err error) {
	at = -1
	again := x.name == "" && x.several()
	for i := range x.talks {
		m, differs := x.talks[i].said.continued(r)
		if again && differs == nil && m.length() == 0 && x.talks[i].said.mute {
			differs = errors.New("the prompt is the one before, which has an empty answer: nothing is new")
		}
		switch {
		case differs != nil:
			err = differs
		case at < 0 || m.length() <= added.length(): // of equals the newest
			at, added = i, m
		}
	}
	if at >= 0 {
		err = nil
	}
	return at, added, err
}

// most returns the most tokens of a conversation after its prompt. A prompt may be longer than data.max_prompt_tokens
// only where it leaves less room.
func (x *episode) most(prompt *rollout.Asked) int {
	n := x.e.Params.MaxNewTokens
	return min(n, x.a.o.MaxPrompt+n-len(prompt.Tokens))
}

// begins returns the beginning of a conversation. differs says why the request continues none, if there are some.
func (x *strand) begins(r *openai.Request, differs error) (s step, err error) {
	if !x.starts(1) {
		why := ""
		if differs != nil {
			why = differs.Error() + ", and "
		}
		return s, openai.Coded(http.StatusBadRequest, "invalid_request_error", "too_many_conversations",
			"%sthe episode has %d conversations, all of rollout.tools.max_conversations", why, x.a.o.MaxConversations)
	}
	defer func() {
		if err != nil {
			x.starts(-1)
		}
	}()
	s.anew = &rollout.Asked{}
	s.added = more{messages: r.Messages, images: r.Images}
	if !r.Chat {
		s.added.text = r.Texts[0]
	}
	if r.Chat {
		var list []rollout.Message
		if list, err = openai.ForTemplate(r.Messages, x.a.o.Calls.Channels); err == nil {
			s.anew.Tokens, s.anew.Text, err = x.a.o.Chat(list, r.Tools, r.Images...)
		}
	} else {
		s.anew.Text = r.Texts[0]
		s.anew.Tokens, err = x.a.o.Text(r.Texts[0])
	}
	if err == nil && len(s.anew.Tokens) == 0 {
		err = errors.New("it has no tokens")
	}
	if err != nil {
		return s, unread(r, err)
	}
	n, most := len(s.anew.Tokens), x.a.o.MaxPrompt
	switch {
	case n <= most:
	case x.a.o.Conversations != All || len(x.talks) == 0 && x.name == "":
		return s, tooLong("the prompt has %d tokens, data.max_prompt_tokens is %d", n, most)
	case x.most(s.anew) <= 0:
		return s, tooLong("the prompt has %d tokens, data.max_prompt_tokens is %d, and with rollout.max_new_tokens a "+
			"conversation has at most %d", n, most, most+x.e.Params.MaxNewTokens)
	}
	return s, nil
}

func tooLong(format string, args ...any) error {
	return openai.Coded(http.StatusBadRequest, "invalid_request_error", "context_length_exceeded", format, args...)
}

// unread says that what a request says cannot be encoded.
func unread(r *openai.Request, err error) error {
	name := "prompt"
	if r.Chat {
		name = "messages"
	}
	return openai.Bad(name, "%s: %v", name, err)
}

// draw draws a turn, and returns the number of tokens before it.
func (x *strand) draw(ctx context.Context, r *openai.Request, s step) (*rollout.Completion, int, error) {
	p := x.e.Params
	var prompt []int32
	if s.anew != nil {
		prompt = s.anew.Tokens
		p.MaxNewTokens = x.most(s.anew)
	} else {
		c := &x.talks[s.talk].c
		prompt = slices.Concat(c.Asked.Tokens, c.Tokens, s.inserted)
		p.MaxNewTokens = x.most(c.Asked) - len(c.Tokens) - len(s.inserted)
	}
	if r.Most != nil && *r.Most > 0 {
		p.MaxNewTokens = min(p.MaxNewTokens, *r.Most)
	}
	p.MinNewTokens = min(p.MinNewTokens, p.MaxNewTokens)
	if err := x.restrict(r, s, &p); err != nil {
		return nil, 0, err
	}
	if r.Params.Stop != nil {
		p.Stop = r.Params.Stop
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.ctx, cancel)()
	turn, err := x.e.Ask(ctx, prompt, x.seed(), p)
	return &turn, len(prompt), err
}

// restrict gives a turn the form that its request wants, if it wants one.
func (x *strand) restrict(r *openai.Request, s step, p *rollout.Params) error {
	spec, err := r.Form(x.a.o.Calls, x.a.o.Spelled, r.Chat && x.a.opensThoughts(s))
	if err != nil || spec == nil {
		return err
	}
	f, err := x.a.o.Forms.Form(*spec)
	if err != nil {
		return r.BadForm(err)
	}
	p.Form = f
	return nil
}

// seed returns the seed of the next turn. The first has the episode's: an agent that asks for a problem's own prompt
// gets what the policy says without an agent. Seeds in a conversation with a name depend on nothing else.
func (x *strand) seed() uint64 {
	switch {
	case x.name != "":
		return x.a.o.Seed(x.e.Seed, fmt.Sprintf("conversation=%q/turn=%d", x.name, len(x.turns)))
	case len(x.turns) == 0:
		return x.e.Seed
	}
	return x.a.o.Seed(x.e.Seed, fmt.Sprintf("turn=%d", len(x.turns)))
}
