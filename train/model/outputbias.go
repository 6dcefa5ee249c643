package model

import (
	"errors"
	"slices"

	"exp/kernels"
)

// This file has the bias of the output projection of Phi-1, 1.5 and 2. Kernels of the output layer know no bias: it is
// one more column of the projection, at Width, and what the projection reads has a 1 there. The 63 columns after it,
// which make rows as long as products like them, are zeros, and so is what meets them: no update changes that. Weight
// decay takes the column of the bias for weights.

// outputPad is the number of columns that a bias adds.
const outputPad = 64

// OutputWidth returns the width of what the output projection reads.
func (c Config) OutputWidth() int {
	if c.OutputBias {
		return c.Width + outputPad
	}
	return c.Width
}

// biasInitial sets the bias's columns of an output projection to zeros.
func (c Config) biasInitial(out []float32, t Tensor) {
	if c.OutputBias && t.Name == outputName {
		for at := c.Width; at < len(out); at += c.OutputWidth() {
			clear(out[at:min(at+outputPad, len(out))])
		}
	}
}

// outputRoom is scratch memory of rows that the output projection reads; empty without a bias.
type outputRoom struct {
	wide kernels.Buffer // [R,OutputWidth] operands
	d    kernels.Buffer // [R,OutputWidth] floats: its gradient
	ones kernels.Buffer // [R]
}

func (x *outputRoom) alloc(c Config, rows int, train bool, f, o func(n int) kernels.Buffer) {
	if !c.OutputBias {
		return
	}
	x.wide, x.ones = o(rows*c.OutputWidth()), f(rows)
	if train {
		x.d = f(rows * c.OutputWidth())
	}
}

// fill sets the constant part.
func (x *outputRoom) fill(be kernels.Backend) {
	if n := x.ones.Len(); n > 0 {
		be.Copy(x.ones, kernels.Host(slices.Repeat([]float32{1}, n)))
		be.Sync()
	}
}

// outputRows returns what the output projection reads of rows h [R,C].
func (m *Model) outputRows(h kernels.Buffer, x outputRoom) kernels.Buffer {
	c, be := m.Config, m.be
	if !c.OutputBias {
		return h
	}
	R, W := h.Len()/c.Width, c.OutputWidth()
	wide := x.wide.Slice(0, int(R*W))
	be.Zero(wide)
	be.AddColumns(wide, h, c.Width, W, 0, 1)
	be.AddColumns(wide, x.ones.Slice(0, R), 1, W, c.Width, 1)
	return wide
}

// scoredOutput does so for the rows that give scores.
func (m *Model) scoredOutput(ws *Workspace) kernels.Buffer {
	return m.outputRows(ws.scoredRows(), ws.output)
}

// outputGradient returns where the gradient of outputRows goes; takeOutput sets dh [R,C] to the part of h.
func (m *Model) outputGradient(dh kernels.Buffer, x outputRoom) kernels.Buffer {
	if c := m.Config; c.OutputBias {
		return x.d.Slice(0, int(dh.Len()/c.Width*c.OutputWidth()))
	}
	return dh
}

func (m *Model) takeOutput(dh, d kernels.Buffer) {
	if c := m.Config; c.OutputBias {
		m.be.TakeColumns(dh, d, c.Width, c.OutputWidth(), 0, 1)
	}
}

// validateOutputBias reports settings that do not go with it.
func (c Config) validateOutputBias() error {
	if c.OutputBias && c.TieEmbeddings {
		return errors.New("model: an output projection that is the token embedding has no bias")
	}
	return nil
}
