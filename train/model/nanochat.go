package model

import (
	"errors"

	"exp/kernels"
)

// This file has what nanochat's block adds to Llama's: no norm has a weight, embeddings have a norm, too, queries and
// keys have theirs after the rotary positions, and these turn the other way round.

// bareNorms reports whether norms have no weights: 1 is added to zeros.
func (c Config) bareNorms() bool { return c.Names == NanoNames }

// zeroWeights returns the widest weight of norms that have none, or that 1 is added to.
func (c Config) zeroWeights() int {
	switch {
	case c.bareNorms():
		return max(c.Width, c.Head)
	case c.HeadLayerNorm:
		return c.Width + c.Head
	case c.Norm == WeightLayerNorm:
		return c.Width
	case c.Norm == PlainLayerNorm, c.Norm == OffsetLayerNorm:
		return 2 * c.Width
	case c.ValueNorm:
		return c.widestHead()
	case c.ScanNorm != NormAfterGate:
		return c.Delta.ValueDim
	}
	return 0
}

// bare is the weight of a norm of n channels that has none, and no gradient.
func (m *Model) bare(n int) norm { return norm{w: m.zeros.Slice(0, n)} }

// bareLayer gives a layer such norms.
func (m *Model) bareLayer(y *layer) {
	c := m.Config
	y.norm1, y.norm2, y.qNorm, y.kNorm = m.bare(c.Width), m.bare(c.Width), m.bare(c.Head), m.bare(c.Head)
}

// finalNorm returns the norm before the heads.
func (b *binder) finalNorm() norm {
	if b.Config.bareNorms() {
		return b.bare(b.Config.Width)
	}
	return b.streamNorm(b.Config.finalNorm())
}

// normEmbeddings normalises embeddings x in place, if the model does.
func (m *Model) normEmbeddings(x, rstd kernels.Buffer) {
	if c := m.Config; c.bareNorms() {
		m.be.RMSNorm(x, rstd, x, m.bare(c.Width).w, c.norm(), c.NormEps)
	}
}

// normEmbeddingsBackward takes dx through that norm. It computes embeddings again, in memory that the layers no longer
// need.
func (m *Model) normEmbeddingsBackward(ws *Workspace, dx, blocks kernels.Buffer) {
	c, n := m.Config, ws.n
	x, rstd, ids := ws.dNorm.Slice(0, n*c.Width), ws.rstdEnd.Slice(0, n), ws.ids.dev.Slice(0, n)
	m.be.Embed(x, m.embed, ids, c.embedScale())
	m.normEmbeddings(x, rstd)
	m.be.Embed(x, m.embed, ids, c.embedScale())
	m.normBackward(dx, dx, x, m.bare(c.Width), rstd, blocks, c.norm(), true)
}

// validateNano reports settings that nanochat's block cannot have.
func (c Config) validateNano() (errs []error) {
	if c.Names != NanoNames {
		return nil
	}
	if !c.UnitOffset || !c.QKNorm || !c.LateQKNorm || c.WideQKNorm || c.PostNorms || c.ValueNorm {
		errs = append(errs, errors.New("model: norms of nanochat add 1 to zeros, before the blocks and of queries "+
			"and keys after the rotary positions"))
	}
	if c.Gate.Factors() != 1 || c.FFNBias || c.Sparse != nil {
		errs = append(errs, errors.New("model: feed-forward blocks of nanochat have no gates, biases or experts"))
	}
	if c.hasLinear() || c.latent() || c.OutputGate || c.Sinks || c.Global != (Global{}) || c.PerLayer > 0 ||
		c.SharedKV > 0 || c.ResidualScale != 0 {
		errs = append(errs, errors.New("model: layers of nanochat have plain attention and no scale of the residual "+
			"stream"))
	}
	return errs
}
