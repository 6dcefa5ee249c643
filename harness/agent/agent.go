// Package agent lets programs of the user's work on problems with the policy. A program plays one episode for each
// completion: it asks the policy for turns, by OpenAI's API, as often as it needs, and does other work in between.
// The conversation is the completion: what the policy answered is learned, and what the program said is context. An
// Agent is what the sampler sees of it (rollout.Agent).
package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"exp/harness/openai"
	"exp/train/form"
	"exp/train/program"
	"exp/train/rollout"
	"exp/train/toolcall"
)

// Options configure an Agent.
type Options struct {
	Argv       []string
	DataSource string            // of problems that name none
	Workers    int               // processes
	Each       int               // episodes of a process at once
	Limit      time.Duration     // longest time that a program takes without asking
	Retries    int               // of an episode whose process ended or fell silent
	Log        func(text string) // of lines on standard error that came together

	MaxTurns  int // of the policy
	MaxPrompt int // tokens of a first prompt
	// Conversations says what becomes of a request that continues none. Episodes have at most MaxConversations, if all
	// are learned from.
	Conversations    Conversations
	MaxConversations int
	States           bool             // turns are told apart by their states, also where an agent says nothing of them
	Ends             []int32          // tokens that end a turn
	Calls            toolcall.Syntax  // in the policy's answers
	Spelled          map[int32]string // its marks that are tokens without a piece
	Forms            *form.Cache      // makes the forms of answers that requests want

	// Chats says that there is a chat template: then programs ask for chats, else for texts that go on.
	Chats bool
	// Images are those that requests may show; nil: the policy reads text alone.
	Images Images
	// Chat returns the tokens and the text of a chat, which shows images, up to where the policy speaks.
	Chat func(list []rollout.Message, tools json.RawMessage, images ...rollout.Picture) ([]int32, string, error)
	// Reply returns the tokens from the end of a turn that made calls, which a token ended (-1: none did), to where
	// the policy speaks again after messages, which show images, as so many before them.
	Reply func(end int32, calls []toolcall.Call, list []rollout.Message, before int,
		images ...rollout.Picture) ([]int32, error)
	// Text returns the tokens of a text that the policy continues, Inserted of a text behind its turn.
	Text, Inserted func(text string) ([]int32, error)
	Piece          func(id int32) []byte
	Seed           func(root uint64, label string) uint64 // of a turn
}

// Images are the images that problems show, and those that programs bring.
type Images interface {
	// Take returns the image of a file that a request shows, an *ImageError if the policy cannot read it. From then
	// on the image has tokens. Other errors, such as a full disk, depend on more than the file. They end the run: an
	// agent that went on without the image would give it other bits.
	Take(encoded []byte) (rollout.Picture, error)
	// File returns the file of an image that a problem shows.
	File(p rollout.Picture) ([]byte, error)
	// Shown returns the image that a token belongs to, and whether a program brought it, not a problem; ok is false
	// for a token of text.
	Shown(id int32) (im rollout.ShownImage, brought, ok bool)
	// Film returns the file of the video that a part of content brings, which Take takes.
	Film(part json.RawMessage) ([]byte, error)
	// FilmPart returns the file of a problem's video as a part of content.
	FilmPart(encoded []byte) (json.RawMessage, error)
}

// ImageError says why the policy cannot read an image; the same file always has it.
type ImageError struct{ Err error }

func (e *ImageError) Error() string { return e.Err.Error() }
func (e *ImageError) Unwrap() error { return e.Err }

// Conversations are the conversations of an episode that are learned from.
type Conversations string

const (
	One  Conversations = "one"  // there is one only
	Last Conversations = "last" // the one that began last
	All  Conversations = "all"
)

// Agent plays episodes.
type Agent struct {
	o    Options
	pool *program.Pool
	last atomic.Int64 // id of the last episode

	listen func() (string, error) // begins to listen once, and returns the address
	server http.Server

	mu   sync.Mutex
	open map[string]*episode // by the key of their addresses
}

var _ rollout.Agent = (*Agent)(nil)

// New prepares an agent. It starts programs when episodes need them. Close it afterwards.
func New(o Options) *Agent {
	a := &Agent{o: o, open: map[string]*episode{}, pool: program.NewPool(program.PoolOptions{Argv: o.Argv,
		Workers: o.Workers, Each: o.Each, Limit: o.Limit, LimitKey: "rollout.tools.limit", Retries: o.Retries,
		Deaths: deaths, Noun: "episode", Example: example, Log: o.Log})}
	a.server.Handler, a.server.ReadHeaderTimeout = a.handler(), headTime
	a.listen = sync.OnceValues(func() (string, error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		go func() { _ = a.server.Serve(l) }() // until Close
		return l.Addr().String(), nil
	})
	return a
}

// deaths is how many episodes fresh programs may die or fall silent in while no episode ends. A program that dies in
// one of ten episodes, more than runs accept by default, reaches it with 32 at once in one run of 25, before the first
// one has ended; one that always dies wastes a minute.
const deaths = 8

// example is a line that ends an episode, for errors.
const example = `{"id": …, "score": 1}`

// headTime bounds the time that a request's header takes.
const headTime = 10 * time.Second

// BrokenError says that a program cannot play.
type BrokenError struct {
	Program string
	Err     error
}

func (e *BrokenError) Error() string { return fmt.Sprintf("agent %s: %v", e.Program, e.Err) }
func (e *BrokenError) Unwrap() error { return e.Err }

// ExitCode is the code of an infrastructure that failed.
func (e *BrokenError) ExitCode() int { return 8 }

// Hint says how to continue.
func (e *BrokenError) Hint() string {
	return "run it by hand on an episode to see why (exp config explain rollout.tools.command shows one), then run " +
		"again: the run continues from its last checkpoint"
}

func (a *Agent) broken(err error) error { return &BrokenError{a.o.Argv[0], err} }

// Try starts the program once and returns a *BrokenError if it ends within a while: a program that works waits for
// episodes.
func (a *Agent) Try(while time.Duration) error {
	if err := a.pool.Try(while); err != nil {
		return a.broken(err)
	}
	return nil
}

// Episodes implements rollout.Agent.
func (a *Agent) Episodes() int { return a.o.Workers * a.o.Each }

// task is a line of the program's input.
type task struct {
	ID         string            `json:"id"`
	BaseURL    string            `json:"base_url"`
	Key        string            `json:"api_key"`
	Model      string            `json:"model"`
	Problem    string            `json:"problem"`
	Prompt     string            `json:"prompt"`
	Messages   []rollout.Message `json:"messages,omitempty"`
	Tools      json.RawMessage   `json:"tools,omitempty"`
	Gold       string            `json:"gold"`
	DataSource string            `json:"data_source"`
	Extra      json.RawMessage   `json:"extra,omitempty"`
}

func (t *task) String() string {
	return fmt.Sprintf("the episode with id %s (problem %s)", t.ID, t.Problem)
}

// model is what the policy is called.
const model = "policy"

// result is a line of its output, but for its id.
type result struct {
	Score   *float64  `json:"score"`
	Correct *bool     `json:"correct"`
	Answer  string    `json:"answer"`
	Error   string    `json:"error"`
	Turns   []earning `json:"turns"`
}

// Play implements rollout.Agent. Its error is a *BrokenError, ctx's, or says which image could not be kept.
func (a *Agent) Play(ctx context.Context, e rollout.Episode) (c rollout.Completion, err error) {
	address, err := a.listen()
	if err != nil {
		return c, fmt.Errorf("listening for the agent's requests: %w", err)
	}
	p := e.Problem
	messages, err := a.messagesOf(p)
	if err != nil {
		return c, fmt.Errorf("problem %s: %w", p.ID, err)
	}
	t := task{ID: fmt.Sprint(a.last.Add(1)), Model: model, Problem: p.ID, Prompt: p.Prompt, Messages: messages,
		Tools: p.Tools, Gold: p.Answer, DataSource: p.DataSource(cmp.Or(p.Kind, a.o.DataSource)), Extra: p.Data}
	var played *episode
	var said result
	var unfit error // the task cannot be written as JSON
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	begin := func() (line []byte, err error) {
		played.end() // its process died
		played = a.begin(ctx, e)
		played.fail = fail
		t.BaseURL, t.Key = "http://"+address+"/episode/"+played.key+"/v1", played.key
		line, unfit = json.Marshal(t)
		return append(line, '\n'), unfit
	}
	read := func(l program.Line) (err error) {
		said, err = readResult(l, &t)
		return err
	}
	idle := func() time.Duration { return played.idle() }
	err = a.pool.Ask(ctx, program.Request{ID: t.ID, Name: t.String(), Begin: begin, Read: read, Idle: idle})
	c = played.end()
	var silence *program.Silence
	switch {
	case ctx.Err() != nil:
		return c, context.Cause(ctx)
	case unfit != nil:
		return c, fmt.Errorf("problem %s: %w", p.ID, unfit)
	case errors.As(err, &silence):
		return failed(c, fmt.Sprintf("the agent failed: %v%s", silence, played.refusal(silence))), nil
	case err != nil:
		return c, a.broken(fmt.Errorf("%w%s", err, played.refusal(err)))
	}
	return a.judged(c, &said), nil
}

// messagesOf returns a problem's messages for a program, with the images that they show.
func (a *Agent) messagesOf(p *rollout.Problem) ([]rollout.Message, error) {
	if len(p.Images) == 0 || a.o.Images == nil {
		return p.Messages, nil
	}
	return openai.WithImages(p.Messages, p.Images, a.o.Images.File, a.o.Images.FilmPart)
}

// bodyLimit bounds the bytes of a request.
func (a *Agent) bodyLimit() int64 {
	if a.o.Images == nil {
		return openai.MostBody
	}
	return openai.MostImageBody
}

// failed returns a completion that is not graded.
func failed(c rollout.Completion, reason string) rollout.Completion {
	c.AgentVerdict, c.Acts = &rollout.Verdict{Status: rollout.NotGraded, Reason: reason}, nil
	if c.Asked == nil {
		c.Finish = rollout.FinishStop // of nothing
	}
	return c
}

// judged returns a completion with what the program said of it.
func (a *Agent) judged(c rollout.Completion, said *result) rollout.Completion {
	switch {
	case said.Error != "":
		return failed(c, "the agent: "+said.Error)
	case c.Asked == nil:
		return failed(c, "the agent asked the policy nothing")
	case said.Turns != nil:
		if err := earn(c.Acts, said.Turns); err != nil {
			return failed(c, "the agent "+err.Error())
		}
	case !a.o.States:
		c.Acts = nil
	}
	score := said.score(&c)
	if score == nil {
		return c // for the run's graders
	}
	right := *score >= 1
	if said.Correct != nil {
		right = *said.Correct
	}
	c.AgentVerdict = &rollout.Verdict{Status: rollout.Graded, Reward: *score, Correct: right, Answer: said.Answer,
		Reason: "as the agent says"}
	return c
}

// score returns the reward of an episode: the sum of what its turns earned, unless the program gives another; nil if
// it says nothing of either.
func (r *result) score(c *rollout.Completion) *float64 {
	if r.Score != nil || !r.earns() {
		return r.Score
	}
	all, _ := c.Earned()
	return &all
}

// readResult reads a line of output as the end of an episode.
func readResult(l program.Line, t *task) (r result, err error) {
	bad := func(text string) (result, error) {
		return r, fmt.Errorf("line %d of its output %s, while %v is open: %s", l.Number, text, t,
			program.Excerpt(l.Text))
	}
	if err := json.Unmarshal(l.Text, &r); err != nil {
		return bad("does not end an episode as " + example + " does")
	}
	if r.Score == nil && !r.earns() && r.Correct != nil {
		return bad(`has "correct" without "score"`)
	}
	r.Answer = strings.ToValidUTF8(r.Answer, "\uFFFD")
	return r, nil
}

// Close ends the programs. No episode may be under way.
func (a *Agent) Close() error {
	err := a.pool.Close()
	_ = a.server.Close()
	return err
}
