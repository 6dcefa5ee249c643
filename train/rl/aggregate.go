package rl

import "fmt"

// Aggregation says how the losses of a mini-batch's tokens combine into one number. With l
// the loss, m the mask, n_i the unmasked tokens of row i, and the counts of the whole
// mini-batch (Counts):
//
//	token-mean                Σ l·m / Tokens
//	token-sum                 Σ l·m
//	seq-mean-token-sum        Σ_i Σ_t l·m / Rows
//	seq-mean-token-sum-norm   Σ_i Σ_t l·m / (Rows·Scale)
//	seq-mean-token-mean       Σ_i (Σ_t l·m / (n_i+1e-8)) / Rows
//
// These are verl's modes (loss_agg_mode; agg_loss in core_algos.py) without its factor for
// data-parallel ranks, which undoes a mean that we do not take.
type Aggregation uint8

const (
	TokenMean           Aggregation = 1 + iota // every token counts the same
	TokenSum                                   // the size of a batch matters
	SeqMeanTokenSum                            // long rows count more
	SeqMeanTokenSumNorm                        // the same over a constant length (Dr. GRPO)
	SeqMeanTokenMean                           // every row counts the same (GRPO's paper)
)

var aggregationNames = [...]string{
	TokenMean:           "token-mean",
	TokenSum:            "token-sum",
	SeqMeanTokenSum:     "seq-mean-token-sum",
	SeqMeanTokenSumNorm: "seq-mean-token-sum-norm",
	SeqMeanTokenMean:    "seq-mean-token-mean",
}

// String returns verl's name of the mode.
func (a Aggregation) String() string {
	if a < TokenMean || a > SeqMeanTokenMean {
		return "unknown"
	}
	return aggregationNames[a]
}

// ParseAggregation returns the mode with that name.
func ParseAggregation(name string) (Aggregation, error) {
	for a := TokenMean; a <= SeqMeanTokenMean; a++ {
		if aggregationNames[a] == name {
			return a, nil
		}
	}
	return 0, fmt.Errorf("unknown loss aggregation %q", name)
}

// Counts are the sizes of a mini-batch that a mean divides by.
type Counts struct {
	Tokens int // unmasked tokens
	// Rows is the number of rows. verl's engine counts nominal rows, including fully masked
	// ones; Count skips those.
	Rows int
	// Scale is the length in tokens that seq-mean-token-sum-norm divides by. verl defaults
	// to the padded width of the batch.
	Scale float64
}

// Count returns the number of unmasked tokens of mask [N] and of rows that have one. Scale
// is 0.
func Count(mask []bool, rows Rows) Counts {
	rows.check(len(mask))
	var n Counts
	for i := range rows.Len() {
		if k := countTrue(mask[rows[i]:rows[i+1]]); k > 0 {
			n.Tokens += k
			n.Rows++
		}
	}
	return n
}

func countTrue(mask []bool) int {
	n := 0
	for _, on := range mask {
		if on {
			n++
		}
	}
	return n
}

// Coefficients sets coef[t] so that the mini-batch's loss is Σ coef[t]·l[t] over all its
// tokens, and its gradient Σ coef[t]·dl[t]; 0 where mask is false. coef and mask are [N] of
// one micro-batch of whole rows; n counts the mini-batch. It panics if n is smaller than
// the micro-batch, or if n.Scale is used and not positive.
func (a Aggregation) Coefficients(coef []float64, mask []bool, rows Rows, n Counts) {
	sameLen(len(mask), len(coef))
	if part := Count(mask, rows); part.Tokens > n.Tokens || part.Rows > n.Rows {
		panic("rl: a micro-batch larger than its mini-batch")
	}
	for i := range rows.Len() {
		lo, hi := rows[i], rows[i+1]
		c := 0.0
		if k := countTrue(mask[lo:hi]); k > 0 {
			c = a.coefficient(float64(k), n)
		}
		for t := lo; t < hi; t++ {
			coef[t] = 0
			if mask[t] {
				coef[t] = c
			}
		}
	}
}

// coefficient returns the weight of each token of a row with rowTokens tokens.
func (a Aggregation) coefficient(rowTokens float64, n Counts) float64 {
	switch a {
	case TokenMean:
		return 1 / float64(n.Tokens)
	case TokenSum:
		return 1
	case SeqMeanTokenSum:
		return 1 / float64(n.Rows)
	case SeqMeanTokenSumNorm:
		if !(n.Scale > 0) {
			panic("rl: loss scale must be positive")
		}
		return 1 / float64(n.Rows) / n.Scale
	case SeqMeanTokenMean:
		return 1 / (rowTokens + meanEps) / float64(n.Rows)
	}
	panic("rl: unknown loss aggregation")
}
