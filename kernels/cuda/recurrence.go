//go:build cuda

package cuda

import "exp/kernels"

// noRecurrence is what the operations of linear attention panic with. Plans refuse such models on a
// GPU, and package model does not make them.
const noRecurrence = "cuda: no kernels for linear attention"

// Recurrent returns false: there are no kernels for linear attention yet.
func (b *Backend) Recurrent() bool { return false }

func (b *Backend) ShortConv(u, x, weight, tails kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	panic(noRecurrence)
}

func (b *Backend) ShortConvBackward(dx, dweight, du, x, weight, blocks kernels.Buffer, r kernels.Runs,
	s kernels.DeltaShape) {
	panic(noRecurrence)
}

func (b *Backend) DeltaGates(gates, x, logs, bias kernels.Buffer, s kernels.DeltaShape) {
	panic(noRecurrence)
}

func (b *Backend) DeltaGatesBackward(dx, dlogs, dbias, dgates, gates, x, logs, bias, blocks kernels.Buffer,
	s kernels.DeltaShape) {
	panic(noRecurrence)
}

func (b *Backend) DeltaRule(out, u, gates, states kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	panic(noRecurrence)
}

func (b *Backend) DeltaRuleBackward(du, dgates, dout, u, gates kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	panic(noRecurrence)
}

func (b *Backend) GatedNorm(out, rstd, x, p, weight kernels.Buffer, s kernels.DeltaShape, eps float64) {
	panic(noRecurrence)
}

func (b *Backend) GatedNormBackward(dx, dp, dweight, dout, x, p, weight, rstd, blocks kernels.Buffer,
	s kernels.DeltaShape) {
	panic(noRecurrence)
}

func (b *Backend) CopyStates(x, pairs kernels.Buffer, n int) { panic(noRecurrence) }

func (b *Backend) SplitGates(qkv, x kernels.Buffer, s kernels.AttentionShape) { panic(noRecurrence) }

func (b *Backend) JoinGates(dx, dqkv kernels.Buffer, s kernels.AttentionShape) { panic(noRecurrence) }

func (b *Backend) OutputGate(out, att, x kernels.Buffer, s kernels.AttentionShape) {
	panic(noRecurrence)
}

func (b *Backend) OutputGateBackward(datt, dx, dout, att, x kernels.Buffer, s kernels.AttentionShape) {
	panic(noRecurrence)
}
