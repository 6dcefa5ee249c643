package model

import "exp/kernels"

// This file has the hidden layer of some reward models' heads, such as Qwen2.5-Math-PRM's: the value is
//
//	w · max(0, W·h + b) + c,    W [C,C], b [C], the rest the value head's
//
// Only frozen models have it. No backend has max(0, x) as an operation: the few rows that are scored take it on the
// host, where it is exact.

// Names of the hidden layer's tensors, as published.
const (
	hiddenWeight = "score.0.weight"
	hiddenBias   = "score.0.bias"
)

// bindHidden binds the hidden layer of the value head.
func (m *Model) bindHidden(matrix func(w kernels.Buffer, out, in int) kernels.Matrix) {
	if !m.Heads.Hidden {
		return
	}
	if m.trainable || !m.Heads.Value {
		panic("model: a hidden layer belongs to a value head that does not learn")
	}
	m.hidden = matrix(m.params.view(hiddenWeight), m.Config.Width, m.Config.Width)
}

// allocHidden makes room for it.
func (ws *Workspace) allocHidden(h Heads, alloc func(n int) kernels.Buffer) {
	if h.Hidden {
		ws.valueHidden = alloc(ws.cap.Tokens * ws.c.Width)
	}
}

// valueRows returns the rows [R,C] that the value head reads.
func (m *Model) valueRows(ws *Workspace) kernels.Buffer {
	h := ws.scoredRows()
	if !m.Heads.Hidden {
		return h
	}
	out := ws.valueHidden.Slice(0, ws.r*m.Config.Width)
	m.be.MatMul(out, h, m.hidden, m.params.view(hiddenBias))
	if m.be.Float() == kernels.F64 {
		rectify[float64](m.be, out)
	} else {
		rectify[float32](m.be, out)
	}
	return out
}

// rectify sets every element of b that is below 0 to 0.
func rectify[T float32 | float64](be kernels.Backend, b kernels.Buffer) {
	host := make([]T, b.Len())
	be.Copy(kernels.Host(host), b)
	be.Sync()
	for i, x := range host {
		if x < 0 {
			host[i] = 0
		}
	}
	be.Copy(b, kernels.Host(host))
	be.Sync()
}
