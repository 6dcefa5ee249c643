package megatron

import (
	"errors"
	"fmt"
	"slices"

	"exp/kernels"
	"exp/train/model"
)

// Grid is how a checkpoint spreads a model over ranks. All sizes are at least 1.
type Grid struct {
	TP int // tensor-parallel ranks
	PP int // pipeline stages
	VP int // chunks of layers per stage: virtual stages
	EP int // expert-parallel ranks
}

// Rank is a process that writes a file: its place along the axes of a Grid.
type Rank struct{ TP, PP, EP int }

// Ranks lists the ranks of g in the order of their folders.
func (g Grid) Ranks() []Rank {
	var list []Rank
	for t := range g.TP {
		for p := range g.PP {
			for e := range g.EP {
				list = append(list, Rank{t, p, e})
			}
		}
	}
	return list
}

// Folder returns the name of a rank's folder: mp_rank_TT[_PPP][_EEE].
func (g Grid) Folder(r Rank) string {
	name := fmt.Sprintf("mp_rank_%02d", r.TP)
	if g.PP > 1 {
		name += fmt.Sprintf("_%03d", r.PP)
	}
	if g.EP > 1 {
		name += fmt.Sprintf("_%03d", r.EP)
	}
	return name
}

// Layout is a model spread over a Grid.
type Layout struct {
	Config model.Config
	Grid   Grid
	// Padded is the number of rows of the embedding and of the output layer, over all
	// tensor-parallel ranks.
	Padded int
	// Chunks holds the number of layers of each chunk, [VP][PP]. The layers are numbered in
	// this order.
	Chunks [][]int
}

// DivisibleBy is Megatron's default of --make-vocab-size-divisible-by.
const DivisibleBy = 128

// Padded returns the rows of a vocabulary over tp ranks: a multiple of by·tp.
func Padded(vocab, by, tp int) int { return (vocab + by*tp - 1) / (by * tp) * by * tp }

// Even returns the layout with the same number of layers in every chunk and Megatron's default
// padding of the vocabulary. Its error lists all obstacles.
func Even(c model.Config, g Grid) (*Layout, error) {
	if err := errors.Join(fits(c), g.divides(c)); err != nil {
		return nil, err
	}
	l := &Layout{Config: c, Grid: g, Padded: Padded(c.Vocab, DivisibleBy, g.TP)}
	for range g.VP {
		l.Chunks = append(l.Chunks, slices.Repeat([]int{c.Layers / (g.PP * g.VP)}, g.PP))
	}
	return l, nil
}

// fits checks that megatron-core's GPTModel has a place for every tensor of the model.
func fits(c model.Config) error {
	switch c.Names {
	case model.LlamaNames, model.AfmoeNames:
	case model.NanoNames:
		return errors.New("nanochat, whose norms have no weights, has no place in Megatron's layout here")
	case model.NeoXNames, model.GPT2Names, model.StarNames, model.PhiNames:
		return errors.New("GPT-NeoX, GPT-2, StarCoder2 and Phi-1, 1.5 and 2 have no place in Megatron's layout here")
	case model.ApertusNames:
		return errors.New("models with xIELU (Apertus) have no place in Megatron's layout here")
	default:
		return errors.New("hybrids with Mamba-2 layers or short convolutions have no place in Megatron's layout here")
	}
	var errs []error
	if c.PostNorms || c.UnitOffset {
		errs = append(errs, errors.New("a GPT layer of Megatron has one plain norm before each of its two blocks; "+
			"this model has norms after them, or of 1 + weight"))
	}
	if c.Recurrent() || c.OutputGate || c.GateMap {
		errs = append(errs, errors.New("a GPT layer of Megatron has plain attention; this model has linear "+
			"attention, or gates of the attention's output"))
	}
	if c.Latent.Rank > 0 || c.Experts.Corrected || c.Experts.Ungated {
		errs = append(errs, errors.New("this model has latent attention or DeepSeek's experts; Megatron's layout of "+
			"them is not supported"))
	}
	if c.ValueNorm || c.LayerScales || c.Experts.Beside || c.Global != (model.Global{}) {
		errs = append(errs, errors.New("this model has norms of values, heads of two sizes or experts beside a "+
			"block; Megatron's layout has no place for them"))
	}
	if c.Norm != model.RMSNorm || c.Branches != model.InTurn {
		errs = append(errs, errors.New("this model has LayerNorm; Megatron's layout of it is not supported"))
	}
	if c.Sinks || c.Experts.Bias {
		errs = append(errs, errors.New("this model has attention sinks and experts with biases; Megatron's layout of "+
			"them is not supported"))
	}
	if c.EmbedScale > 0 || c.QueryScale > 0 || c.ResidualScale > 0 || c.LogitDivisor > 0 {
		errs = append(errs, errors.New("this model multiplies embeddings, scores, outputs of blocks or logits by "+
			"factors of its own, which Megatron's arguments cannot say"))
	}
	if c.Interleaved || c.LateQKNorm {
		errs = append(errs, errors.New("this model turns neighbouring channels of a head together, or norms queries "+
			"and keys after that; Megatron's layout of it is not supported"))
	}
	if c.WideQKNorm {
		errs = append(errs, errors.New("each head of queries and keys has its own norm in Megatron; this model "+
			"norms all heads together"))
	}
	if c.OutBias != c.FFNBias || c.OutBias && !c.QKVBias {
		errs = append(errs, errors.New("in Megatron all linear layers have biases, or only queries, keys and values "+
			"have; this model has biases on some others"))
	}
	if c.Gate != kernels.SiLU {
		errs = append(errs, errors.New("the feed-forward blocks are gated by another function than SiLU: Megatron's "+
			"arguments cannot say so"))
	}
	return errors.Join(errs...)
}

// AxisError is an obstacle that the size of one axis of a Grid makes.
type AxisError struct {
	Axis string // TP, PP, VP or EP
	text string
}

func (e *AxisError) Error() string { return e.text }

// divides checks that the axes of the grid divide the model. Its errors are *AxisError,
// joined.
func (g Grid) divides(c model.Config) error {
	var errs []error
	bad := func(axis, format string, args ...any) {
		errs = append(errs, &AxisError{Axis: axis, text: fmt.Sprintf(format, args...)})
	}
	for _, axis := range []struct {
		name string
		n    int
	}{{"TP", g.TP}, {"PP", g.PP}, {"VP", g.VP}, {"EP", g.EP}} {
		if axis.n < 1 {
			bad(axis.name, "%s is %d, must be at least 1", axis.name, axis.n)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, part := range []struct {
		n    int
		what string
	}{
		{c.Heads, "attention heads"}, {c.QKV(), "rows of queries, keys and values"},
		{g.width(c, false), "feed-forward channels"}, {g.width(c, true), "channels of an expert"},
		{c.Experts.Shared, "channels of the shared expert"},
	} {
		if part.n%g.TP != 0 {
			bad("TP", "TP %d does not divide the model's %d %s", g.TP, part.n, part.what)
		}
	}
	if n := g.PP * g.VP; c.Layers%n != 0 {
		bad("PP", "%d layers do not spread evenly over %d chunks (PP %d × VP %d)", c.Layers, n, g.PP, g.VP)
	}
	switch {
	case g.EP > 1 && !slices.Contains(c.Sparse, true):
		bad("EP", "EP %d: this model has no experts to spread", g.EP)
	case c.Experts.Count%g.EP != 0:
		bad("EP", "EP %d does not divide the model's %d experts", g.EP, c.Experts.Count)
	}
	return errors.Join(errs...)
}

// width returns the channels of the dense or the sparse layers' blocks, 0 if there are none.
func (Grid) width(c model.Config, sparse bool) int {
	switch {
	case sparse && slices.Contains(c.Sparse, true):
		return c.Experts.FFN
	case !sparse && (c.Sparse == nil || slices.Contains(c.Sparse, false)):
		return c.FFN
	}
	return 0
}

// layers returns the numbers of the layers of a chunk: from first, n of them.
func (l *Layout) layers(stage, chunk int) (first, n int) {
	for v, stages := range l.Chunks {
		for p, count := range stages {
			if v == chunk && p == stage {
				return first, count
			}
			first += count
		}
	}
	panic("megatron: no such chunk")
}
