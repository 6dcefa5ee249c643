package rollout

import "context"

// Request asks for completions of one prompt.
type Request struct {
	// Prompt holds the token ids, at least one.
	Prompt []int32
	// Seeds has one entry per wanted completion. A completion depends on the weights, the
	// prompt, its seed and the Params alone, not on other requests or other seeds.
	Seeds []uint64
	// Problem is the problem that the prompt asks; only an Environment reads it.
	Problem *Problem
}

// Params shape the sampling of all requests of a call.
type Params struct {
	Temperature  float64  // 0 means greedy
	TopK         int      // 0 means off
	TopP         float64  // 1 means off
	MinP         float64  // 0 means off
	MaxNewTokens int      // per completion, end tokens and inserted ones included
	Stop         []string // end a completion where one of these appears in its text
	// Environment writes between turns; nil: a completion is one turn. MaxNewTokens covers what it writes.
	Environment Environment
}

// Sampler draws completions from the current policy.
type Sampler interface {
	// Sample returns completions[i][k] for reqs[i].Seeds[k]. done, if not nil, is called
	// now and then with the number of finished completions. Sample returns early, with
	// ctx's error, only if ctx is cancelled.
	Sample(ctx context.Context, reqs []Request, p Params, done func(n int)) ([][]Completion, error)
}
