package train

import (
	"math"

	"exp/train/model"
	"exp/train/rl"
)

// bundleTokens is the token limit of sequences that share a prompt when a single
// sequence takes at most Rows.Longest tokens.
const bundleTokens = 1024

// Rows bound the completions that a step of training has. Workspaces are sized for them, as if no two
// problems had the same prompt; they grow if neighbours do.
type Rows struct {
	Problems int // of a step
	Update   int // problems of a mini-batch
	Samples  int // completions of a problem
	Slices   int // of a mini-batch
	Longest  int // tokens of the longest sequence
	New      int // tokens of the longest completion
	Budget   int // tokens of a micro-batch
	Taught   int // likeliest tokens of a teacher at each place
	// Conversations is how many a completion has at most, whose tokens Longest and New count together; 0 stands for 1.
	Conversations int
	// Pairs says that a completion stands for a pair of them with one prompt, whose tokens Longest and New count.
	Pairs bool
}

// limit returns the token limit of a bundle, which changes bits.
func (r Rows) limit() int { return max(r.Longest, bundleTokens) }

// prompt returns the tokens of the longest prompt.
func (r Rows) prompt() int { return max(1, r.Longest-r.New) }

// more returns what a further completion of a bundle counts at most.
func (r Rows) more() int { return max(2, r.New) }

// bundles returns the most bundles of a problem: as many completions fit into one as at full length, and only one that
// has several conversations.
func (r Rows) bundles() int {
	if r.Conversations > 1 {
		return r.Samples
	}
	fit := min(r.Samples, max(1, (r.limit()-r.prompt())/r.more()))
	return (r.Samples + fit - 1) / fit
}

// Bundles returns the most parts of a problem's completions in a mini-batch. A part shares one pass over the prompt
// and lies in one slice.
func (r Rows) Bundles() int { return r.bundles() }

// tokens returns the most tokens of some problems.
func (r Rows) tokens(problems int) int {
	return problems * (r.bundles()*r.prompt() + r.Samples*r.more())
}

// bundle returns the tokens of the longest bundle.
func (r Rows) bundle() int { return min(r.limit(), r.tokens(1)) }

// slice returns the most tokens of a slice. The last of its bundles, which is its shortest, went to it when
// it had the least work of all slices.
func (r Rows) slice() int {
	all, longest := r.tokens(r.Update), r.bundle()
	if r.Update*r.bundles() <= r.Slices {
		return longest
	}
	even := float64(all)/float64(r.Slices) + float64(longest)*(1-1/float64(r.Slices))
	perToken := float64(rl.Workload(longest)) / float64(longest) / float64(rl.Workload(1)) // work of long ones
	return min(all, int(math.Ceil(even*perToken)))
}

// Scored returns the capacity of a workspace that scores completions.
func (r Rows) Scored() model.Capacity { return r.capacity(r.tokens(r.Problems), r.Problems) }

// Trained returns the capacity of a workspace that computes gradients of slices.
func (r Rows) Trained() model.Capacity { return r.capacity(r.slice(), r.Update) }

// ScoredTokens returns the most tokens of a micro-batch that is scored.
func (r Rows) ScoredTokens() int { return r.batch(r.tokens(r.Problems)) }

// TrainedTokens returns the most tokens of a micro-batch in a backward pass.
func (r Rows) TrainedTokens() int { return r.batch(r.slice()) }

// batch returns the most tokens of a micro-batch cut from so many.
func (r Rows) batch(tokens int) int { return min(tokens, max(r.Budget, r.bundle())) }

// capacity returns the capacity for micro-batches of so many tokens, of as many problems. A plan knows only how
// long sequences may be, so small workspaces are all of one size.
func (r Rows) capacity(tokens, problems int) model.Capacity {
	tokens = max(bundleTokens, r.batch(tokens))
	if r.Pairs {
		problems *= 2
	}
	return model.Capacity{Tokens: tokens, Sequences: min(tokens/2+1, problems*r.Samples*max(1, r.Conversations)),
		Taught: r.Taught}
}

// capacityOf returns the capacity that some bundles need.
func capacityOf(bundles []bundle) (c model.Capacity) {
	for _, u := range bundles {
		c.Tokens, c.Sequences = c.Tokens+u.tokens, c.Sequences+u.sequences
	}
	return c
}
