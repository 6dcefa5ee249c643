// Package generate is the sampler: continuous batching over a paged cache of keys and
// values, on the same weights and the same kernels as training. The log-prob that it
// records for a token has the same bits as the trainer's forward pass.
//
// A call takes requests, each a prompt and the seeds of its completions. The engine
// computes the prompt without its last token once; completions share its full pages and
// copy a partly filled one. Each completion then starts with the prompt's last token in its
// own row. A prompt with the same beginning as another (a system prompt, examples), or as another with a
// completion (the next turn of a conversation), reuses the full pages that hold it: they stay in the cache
// until others need the room, those that were left longest ago first. Completions take
// slots in order; an ended one frees its slot for the next at once. If the cache is too small
// for all, the completion that started last gives its pages back. Later its prompt and the
// tokens that it has drawn are computed again like a prompt, and it continues. Layers with linear
// attention have a state of each prompt and completion instead (states.go). None of this
// affects results: a completion depends on weights, prompt, seed and parameters alone.
//
// With an environment (rollout.Environment) a completion has turns: what a tool says is inserted
// after the call, computed like a prompt, and the completion goes on. An agent (rollout.Agent)
// asks for the turns of a completion itself, as clients of Serve ask.
package generate

import (
	"context"
	"errors"
	"fmt"

	"exp/kernels"
	"exp/train/model"
	"exp/train/ranks"
	"exp/train/rollout"
)

// Vocabulary is the part of a tokenizer that the engine needs.
type Vocabulary interface {
	// Piece returns the bytes of a token; empty for end tokens.
	Piece(id int32) []byte
	// EndIDs returns the tokens that end a completion.
	EndIDs() []int32
}

// Options size an Engine; none of them changes a result.
type Options struct {
	MaxSequences int // completions decoded together
	PageTokens   int // positions in a cache page, a multiple of 16
	MaxTokens    int // longest prompt and completion together
	StepRows     int // rows of a step: MaxSequences, then as many prompt tokens as fit
	// CacheTokens is the room of the cache in positions. 0 lets every sequence reach MaxTokens. With
	// less, sequences that find no page give theirs back and start again later.
	CacheTokens int
	// Ridge is the number of rows that a step computes in the time that it takes to read the weights: steps of about
	// as many also compute drafts of tokens to come. 0: none do. Ranks that share products take the least of theirs.
	Ridge int
	// Calls are the largest calls of Sample. None: any call.
	Calls []Call
	// Products are the ranks that share the model's products, and so take every step together; nil: this one
	// alone. They wait for replies together, and the first one's Environment writes them.
	Products ranks.Group
}

// tableWidth returns the number of pages of the longest sequence.
func (o Options) tableWidth() int { return o.pagesOf(o.MaxTokens) }

// pagesOf returns the number of pages of some positions.
func (o Options) pagesOf(tokens int) int { return (tokens + o.PageTokens - 1) / o.PageTokens }

// tableRows returns the number of sequences that a step's page table holds: every slot, and
// prompts that wait for slots.
func (o Options) tableRows() int { return o.MaxSequences + max(1, o.MaxSequences/4) }

// table returns the entries of a step's page table.
func (o Options) table() int { return o.tableRows() * o.tableWidth() }

// pages returns the page count of the cache.
func (o Options) pages() int {
	n := o.fullPages()
	if o.CacheTokens > 0 {
		n = min(n, o.CacheTokens/o.PageTokens)
	}
	return max(n, o.leastPages())
}

// fullPages returns the page count with which every sequence can reach full length. A prompt waits while
// all slots are taken; another waits for each slot that is free.
func (o Options) fullPages() int {
	n := (o.MaxSequences + 1) * o.tableWidth()
	if len(o.Calls) > 0 {
		most := 0
		for _, c := range o.Calls {
			most = max(most, o.pagesIn(c))
		}
		n = min(n, most)
	}
	return n + 1 // which a completion finds free when it starts
}

// leastPages returns the page count with which a sequence can reach full length while its prompt
// waits for further completions.
func (o Options) leastPages() int { return o.tableWidth() + 2 }

// FullCache returns the room of a cache, in tokens, that lets every sequence reach full length.
func (o Options) FullCache() int { return int(max(o.fullPages(), o.leastPages()) * o.PageTokens) }

// LeastCache returns the least room of a cache.
func (o Options) LeastCache() int { return int(o.leastPages() * o.PageTokens) }

// Rows returns the most rows of a step.
func (o Options) Rows() int { return max(o.StepRows, o.MaxSequences+1) }

// stepRows is Rows for models of configuration c. Where the tokens of an image see each other, a step computes all of
// them, so that next to the step's draws there is room for an image.
func (o Options) stepRows(c model.Config) int {
	if c.Images.Block == 0 {
		return o.Rows()
	}
	return max(o.Rows(), max(o.MaxSequences, 1+longestDraft)+c.Images.Block)
}

// Draws returns the most draws of a step.
func (o Options) Draws() int { return min(o.Rows(), max(o.MaxSequences, 1+longestDraft)) }

// Bytes returns the bytes that an engine for models of configuration c allocates on a
// device with operands of that type, for its cache and for its steps, on each of some ranks that
// share products.
func (o Options) Bytes(c model.Config, h model.Heads, operand kernels.DType, shared int) (cache, step int) {
	cache = c.CacheBytes(o.pages(), o.PageTokens, operand, shared) + int(o.stateSlots(c)*c.StateBytes(operand))
	return cache, c.DecoderBytes(h, o.stepRows(c), o.table(), operand)
}

// Stats count an engine's work since it was made.
type Stats struct {
	Steps         int
	PromptTokens  int // computed; shared ones count once, drawn ones of restarted completions each time
	FoundTokens   int // of prompts, and drawn ones of restarted completions, that were in the cache already
	SampledTokens int
	Drafts        int // tokens that were guessed and computed ahead
	KeptDrafts    int // of them, those that were then drawn, and so took no step of their own
	Restarts      int // completions that gave their pages back and were computed again
}

// Engine samples from a model. It is a rollout.Sampler for one goroutine at a time.
type Engine struct {
	be     kernels.Backend
	m      *model.Model
	vocab  Vocabulary
	end    []int32 // tokens that end a completion
	opt    Options
	cache  *model.Cache
	dec    *model.Decoder
	pages  *pagePool
	state  statePool
	stats  Stats
	step   stepBuilder
	drafts *drafter
	idle   []*sequence // ended sequences, whose arrays are reused
}

var _ rollout.Sampler = (*Engine)(nil)

// New allocates an engine for m. Close frees its memory.
func New(be kernels.Backend, m *model.Model, vocab Vocabulary, o Options) (*Engine, error) {
	switch {
	case o.MaxSequences < 1:
		return nil, fmt.Errorf("generate: max_sequences is %d, must be at least 1", o.MaxSequences)
	case o.PageTokens < 1 || o.PageTokens%kernels.Lanes != 0:
		return nil, fmt.Errorf("generate: page_tokens is %d, must be a multiple of %d", o.PageTokens, kernels.Lanes)
	case o.MaxTokens < 1 || o.MaxTokens > m.Config.MaxPositions:
		return nil, fmt.Errorf("generate: max_tokens is %d, must be within the model's %d positions", o.MaxTokens,
			m.Config.MaxPositions)
	}
	o.StepRows = o.stepRows(m.Config)
	e := &Engine{be: be, m: m, vocab: vocab, end: vocab.EndIDs(), opt: o}
	e.pages = newPagePool(o.pages(), o.PageTokens)
	e.state.slots = o.stateSlots(m.Config)
	e.drafts = newDrafter(o)
	e.drafts.vocab = m.Config.Vocab
	var err error
	if e.cache, err = model.NewCache(be, m.Config, o.pages(), o.PageTokens, e.state.slots); err != nil {
		return nil, err
	}
	if e.dec, err = model.NewDecoder(be, m.Config, m.Heads, o.StepRows, o.table()); err != nil {
		e.cache.Close()
		return nil, err
	}
	return e, nil
}

// Close frees the engine's memory.
func (e *Engine) Close() {
	e.cache.Close()
	e.dec.Close()
}

// Stats returns the work done so far.
func (e *Engine) Stats() Stats { return e.stats }

// Sample draws the completions that reqs ask for.
func (e *Engine) Sample(ctx context.Context, reqs []rollout.Request, p rollout.Params,
	done func(n int)) ([][]rollout.Completion, error) {
	if err := e.check(reqs, p, e.opt.MaxTokens); err != nil {
		return nil, err
	}
	if p.Agent != nil {
		return e.play(ctx, reqs, p, done)
	}
	if err := e.drafts.agree(e.opt.Products); err != nil {
		return nil, fmt.Errorf("generate: %w", err)
	}
	s := newSchedule(e, reqs, p)
	if s.turns = newTurns(ctx, p.Environment, s.total, e.opt.Products); s.turns == nil {
		s.know(reqs)
	}
	defer s.turns.close()
	return e.run(ctx, s, done)
}

// run takes the steps of a schedule until all of its completions have ended.
func (e *Engine) run(ctx context.Context, s *schedule, done func(n int)) ([][]rollout.Completion, error) {
	e.pages.reset()
	e.state.reset()
	e.drafts.reset()
	p := &s.p
	sampling := kernels.Sampling{Temperature: p.Temperature, TopK: p.TopK, TopP: p.TopP, MinP: p.MinP}
	reported := 0
	for !s.finished() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := s.takeReplies(ctx, !e.advance(s, sampling)); err != nil {
			return nil, fmt.Errorf("generate: %w", err)
		}
		if done != nil && s.ended > reported {
			reported = s.ended
			done(reported)
		}
	}
	return s.out, nil
}

// advance takes one step, or reports that there is nothing to compute until a reply comes. It allocates only
// where completions begin or end.
func (e *Engine) advance(s *schedule, p kernels.Sampling) bool {
	s.admit()
	e.drafts.plan(s)
	e.m.CopyPages(e.dec, e.cache, s.copies)
	e.m.CopyStates(e.dec, e.cache, e.state.copies)
	st := e.step.build(e, s)
	if len(st.Tokens) == 0 {
		return !s.waits()
	}
	out := e.step.drawn(len(st.Sample))
	e.m.Step(e.dec, e.cache, st, p, out)
	if s.feed != nil {
		s.feed.took(e.step.draws, out)
	}
	e.stats.Steps++
	e.stats.Drafts += len(st.Sample) - len(s.running)
	e.stats.PromptTokens += len(st.Tokens) - len(st.Sample)
	s.take(out)
	return true
}

// check returns an error for requests that the engine cannot take. A prompt and its completion may have room tokens.
func (e *Engine) check(reqs []rollout.Request, p rollout.Params, room int) error {
	switch {
	case p.MaxNewTokens < 1:
		return fmt.Errorf("generate: max_new_tokens is %d, must be at least 1", p.MaxNewTokens)
	case !(p.Temperature >= 0):
		return fmt.Errorf("generate: temperature is %g, must not be negative", p.Temperature)
	case !(p.TopP > 0 && p.TopP <= 1):
		return fmt.Errorf("generate: top_p is %g, must be in (0, 1]", p.TopP)
	case p.TopK < 0:
		return fmt.Errorf("generate: top_k is %d, must not be negative", p.TopK)
	case !(p.MinP >= 0 && p.MinP <= 1):
		return fmt.Errorf("generate: min_p is %g, must be in [0, 1]", p.MinP)
	case p.Form != nil && p.Environment != nil:
		return errors.New("generate: completions into which an environment writes have no form")
	}
	if err := checkAdjustments(&p, e.m.Config.Vocab); err != nil {
		return err
	}
	for i, r := range reqs {
		if len(r.Prompt) == 0 {
			return fmt.Errorf("generate: request %d has an empty prompt", i)
		}
		if id := r.Prompt[len(r.Prompt)-1]; int(id) >= e.m.Config.Vocab {
			return fmt.Errorf("generate: the prompt of request %d ends with an image; text must follow it", i)
		}
		if n := len(r.Prompt) + p.MaxNewTokens; n > room {
			return fmt.Errorf("generate: request %d needs %d tokens (prompt %d + max_new_tokens %d), the engine "+
				"holds %d",
				i, n, len(r.Prompt), p.MaxNewTokens, room)
		}
	}
	return nil
}
