package rollout

import "context"

// Request asks for completions of one prompt.
type Request struct {
	// Prompt holds the token ids, at least one.
	Prompt []int32
	// Seeds has one entry per wanted completion. A completion depends on the weights, the
	// prompt, its seed and the Params alone, not on other requests or other seeds.
	Seeds []uint64
	// Problem is the problem that the prompt asks; only an Environment or an Agent reads it.
	Problem *Problem
}

// Params shape the sampling of all requests of a call.
type Params struct {
	Temperature  float64 // 0 means greedy
	TopK         int     // 0 means off
	TopP         float64 // 1 means off
	MinP         float64 // 0 means off
	Penalties    Penalties
	Bias         []Bias   // of different tokens
	Form         Form     // of the completions' texts; nil: any text
	MinNewTokens int      // no token ends a completion before, unless Form is complete; what MaxNewTokens counts
	MaxNewTokens int      // per completion, end tokens and inserted ones included
	Stop         []string // end a completion where one of these appears in its text
	// Environment writes between turns; nil: a completion is one turn. MaxNewTokens covers what it writes.
	Environment Environment
	// Agent asks for the turns, without an Environment; nil: the requests' prompts do.
	Agent Agent
}

// Penalties change the logits of tokens that were there before, in every draw, before the temperature and the filters.
// With n the number of times that the completion has the token,
//
//	z = z/Repetition if z > 0, else z·Repetition    for a token of the prompt or of the completion
//	z = z - Frequency·n - Presence                  if n > 0
//
// as vLLM does (Repetition is arXiv:1909.05858 §4.1, and transformers' processor of that name). Like the filters, they
// change which tokens are drawn, not the values recorded for them. Tokens that an Environment inserts count as
// prompt. The zero value is off.
type Penalties struct {
	Repetition float64 // > 0; 0 and 1 are off
	Presence   float64
	Frequency  float64
}

// On reports whether any is on.
func (p Penalties) On() bool { return p.Repeats() || p.Presence != 0 || p.Frequency != 0 }

// Repeats reports whether Repetition is on.
func (p Penalties) Repeats() bool { return p.Repetition != 0 && p.Repetition != 1 }

// Bias is added to the logit of a token, before all else.
type Bias struct {
	Token int32
	Add   float64
}

// Sampler draws completions from the current policy.
type Sampler interface {
	// Sample returns completions[i][k] for reqs[i].Seeds[k]. done, if not nil, is called
	// now and then with the number of finished completions. Sample returns early, with
	// ctx's error, only if ctx is cancelled.
	Sample(ctx context.Context, reqs []Request, p Params, done func(n int)) ([][]Completion, error)
}
