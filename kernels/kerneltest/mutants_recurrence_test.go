package kerneltest

import (
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// TestFindsRecurrenceMutants is TestFindsMutants for linear attention.
func TestFindsRecurrenceMutants(t *testing.T) {
	r := ref.New[float32]()
	findsMutants(t, []slip{
		{"sequences of a group begin anew", "ShortConv/sequences", false, apart{r}},
		{"states of a group begin anew", "DeltaRule/sequences", false, apart{r}},
		{"a prefix gets no gradient of its group's sequences", "DeltaRuleBackward", false, apart{r}},
		{"a prefix's last inputs get none", "ShortConvBackward", false, apart{r}},
		{"the end of a sequence is not kept", "ShortConv/steps", false, forgetful{r}},
		{"the state of a sequence is not kept", "DeltaRule/steps", false, forgetful{r}},
		{"the first rows go on from what a slot held", "ShortConv/steps", false, unclean{r}},
		{"the first state is what a slot held", "DeltaRule/steps", false, unclean{r}},
		{"rows go key head by key head", "ShortConv/sequences", false, otherLayout{r}},
		{"gates go key head by key head", "DeltaGates", false, otherLayout{r}},
		{"the norm's gates do", "GatedNorm", false, otherLayout{r}},
		{"value heads read key heads in turn", "DeltaRule/sequences", false, inTurn{r}},
		{"the norm adds 1 to its weight", "GatedNorm", false, unitNorm{r}},
		{"time steps have no limits", "DeltaGates", false, unlimited{r}},
		{"the convolution forgets its bias", "ShortConv/sequences", false, biasless{r}},
		{"its gradient is forgotten", "ShortConvBackward", false, biasless{r}},
		{"gated convolutions of a group begin anew", "GatedConv/sequences", false, apart{r}},
		{"a prefix's last products get no gradient", "GatedConvBackward", false, apart{r}},
		{"the last products are not kept", "GatedConv/steps", false, forgetful{r}},
		{"the first rows go on from products in a slot", "GatedConv/steps", false, unclean{r}},
		{"factors before and after are exchanged", "GatedConv/sequences", false, exchanged{r}},
		{"their gradients are", "GatedConvBackward", false, exchanged{r}},
		{"values skip no state", "DeltaGates", false, skipless{r}},
		{"the norm comes before the gate", "GroupedNorm", false, gateLast{r}},
		{"gates follow all queries", "SplitGates", false, gatesLast{r}},
		{"the output's gates follow all queries", "OutputGate", false, gatesLast{r}},
		{"states are copied from the last", "CopyStates", false, backwards{r}},
	})
}

// apart does not know groups.
type apart struct{ kernels.Backend }

func (b apart) ShortConv(u, x, weight, bias, tails kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	r.Groups = kernels.Buffer{}
	b.Backend.ShortConv(u, x, weight, bias, tails, r, s)
}

func (b apart) ShortConvBackward(dx, dweight, dbias, du, x, weight, bias, blocks kernels.Buffer, r kernels.Runs,
	s kernels.DeltaShape) {
	r.Groups = kernels.Buffer{}
	b.Backend.ShortConvBackward(dx, dweight, dbias, du, x, weight, bias, blocks, r, s)
}

func (b apart) DeltaRule(out, u, gates, states kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	r.Groups = kernels.Buffer{}
	b.Backend.DeltaRule(out, u, gates, states, r, s)
}

func (b apart) DeltaRuleBackward(du, dgates, dout, u, gates kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	r.Groups = kernels.Buffer{}
	b.Backend.DeltaRuleBackward(du, dgates, dout, u, gates, r, s)
}

func (b apart) GatedConv(u, x, weight, tails kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	r.Groups = kernels.Buffer{}
	b.Backend.GatedConv(u, x, weight, tails, r, s)
}

func (b apart) GatedConvBackward(dx, dweight, du, x, weight, blocks kernels.Buffer, r kernels.Runs,
	s kernels.DeltaShape) {
	r.Groups = kernels.Buffer{}
	b.Backend.GatedConvBackward(dx, dweight, du, x, weight, blocks, r, s)
}

// forgetful leaves slots as they were.
type forgetful struct{ kernels.Backend }

func (b forgetful) ShortConv(u, x, weight, bias, tails kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	b.Backend.ShortConv(u, x, weight, bias, copied(b, tails), r, s)
}

func (b forgetful) DeltaRule(out, u, gates, states kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	b.Backend.DeltaRule(out, u, gates, copied(b, states), r, s)
}

func (b forgetful) GatedConv(u, x, weight, tails kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	b.Backend.GatedConv(u, x, weight, copied(b, tails), r, s)
}

func copied(b kernels.Backend, x kernels.Buffer) kernels.Buffer {
	y, err := b.Alloc(b.Float(), x.Len())
	if err != nil {
		panic(err)
	}
	b.Copy(y, x)
	return y
}

// unclean continues every sequence.
type unclean struct{ kernels.Backend }

func (b unclean) ShortConv(u, x, weight, bias, tails kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	b.Backend.ShortConv(u, x, weight, bias, tails, continued(b, r), s)
}

func (b unclean) DeltaRule(out, u, gates, states kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	b.Backend.DeltaRule(out, u, gates, states, continued(b, r), s)
}

func (b unclean) GatedConv(u, x, weight, tails kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	b.Backend.GatedConv(u, x, weight, tails, continued(b, r), s)
}

func continued(b kernels.Backend, r kernels.Runs) kernels.Runs {
	if r.Slots.Empty() {
		return r
	}
	var list []int32
	for _, slot := range kernels.Elems[int32](r.Slots) {
		list = append(list, max(slot, -1-slot))
	}
	slots, err := b.Alloc(kernels.I32, len(list))
	if err != nil {
		panic(err)
	}
	b.Copy(slots, kernels.Host(list))
	r.Slots = slots
	return r
}

// exchanged takes the factor before the convolution for the one after it.
type exchanged struct{ kernels.Backend }

func (b exchanged) swap(x kernels.Buffer, s kernels.DeltaShape) kernels.Buffer {
	y, C := copied(b, x), s.Mixed()
	for m := 0; m < x.Len(); m += s.Stride() {
		from, to := kernels.Elems[float32](x)[m:], kernels.Elems[float32](y)[m:]
		copy(to[:C], from[C:2*C])
		copy(to[C:2*C], from[:C])
	}
	return y
}

func (b exchanged) GatedConv(u, x, weight, tails kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	b.Backend.GatedConv(u, b.swap(x, s), weight, tails, r, s)
}

func (b exchanged) GatedConvBackward(dx, dweight, du, x, weight, blocks kernels.Buffer, r kernels.Runs,
	s kernels.DeltaShape) {
	b.Backend.GatedConvBackward(dx, dweight, du, b.swap(x, s), weight, blocks, r, s)
}

// otherLayout takes one layout for the other.
type otherLayout struct{ kernels.Backend }

func (b otherLayout) ShortConv(u, x, weight, bias, tails kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	s.ByKey = !s.ByKey
	b.Backend.ShortConv(u, x, weight, bias, tails, r, s)
}

func (b otherLayout) DeltaGates(gates, x, logs, bias, skip kernels.Buffer, s kernels.DeltaShape) {
	s.ByKey = !s.ByKey
	b.Backend.DeltaGates(gates, x, logs, bias, skip, s)
}

func (b otherLayout) GatedNorm(out, rstd, x, p, weight kernels.Buffer, s kernels.DeltaShape, eps float64) {
	s.ByKey = !s.ByKey
	b.Backend.GatedNorm(out, rstd, x, p, weight, s, eps)
}

// inTurn gives value head h key head h mod Keys: it moves the value heads before and after.
type inTurn struct{ kernels.Backend }

func (b inTurn) DeltaRule(out, u, gates, states kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	R, M := s.Values/s.Keys, u.Len()/s.Mixed()
	y, g := copied(b, u), copied(b, gates)
	from, to := kernels.Elems[float32](u), kernels.Elems[float32](y)
	fromGates, toGates := kernels.Elems[float32](gates), kernels.Elems[float32](g)
	place := func(h int) int { return h%s.Keys*R + h/s.Keys }
	v0, width := s.Value(), s.Gates()
	for m := range M {
		for h := range s.Values {
			copy(to[m*s.Mixed()+v0+place(h)*s.ValueDim:][:s.ValueDim], from[m*s.Mixed()+v0+h*s.ValueDim:])
			for at := 0; at < width; at += s.Values {
				toGates[m*width+at+place(h)] = fromGates[m*width+at+h]
			}
		}
	}
	moved := copied(b, out)
	b.Backend.DeltaRule(moved, y, g, states, r, s)
	for m := range M {
		for h := range s.Values {
			copy(kernels.Elems[float32](out)[(m*s.Values+h)*s.ValueDim:][:s.ValueDim],
				kernels.Elems[float32](moved)[(m*s.Values+place(h))*s.ValueDim:])
		}
	}
}

// unitNorm multiplies by 1 + weight.
type unitNorm struct{ kernels.Backend }

func (b unitNorm) GatedNorm(out, rstd, x, p, weight kernels.Buffer, s kernels.DeltaShape, eps float64) {
	w := copied(b, weight)
	for i := range kernels.Elems[float32](w) {
		kernels.Elems[float32](w)[i]++
	}
	b.Backend.GatedNorm(out, rstd, x, p, w, s, eps)
}

// gatesLast expects all gates behind all queries.
type gatesLast struct{ kernels.Backend }

func (b gatesLast) reordered(x kernels.Buffer, s kernels.AttentionShape) kernels.Buffer {
	y, wide := copied(b, x), s.Stride()+s.H*s.D
	for m := range x.Len() / wide {
		for h := range s.H {
			from, to := kernels.Elems[float32](x)[m*wide:], kernels.Elems[float32](y)[m*wide:]
			copy(to[2*h*s.D:(2*h+1)*s.D], from[h*s.D:])
			copy(to[(2*h+1)*s.D:(2*h+2)*s.D], from[(s.H+h)*s.D:])
		}
	}
	return y
}

func (b gatesLast) SplitGates(qkv, x kernels.Buffer, s kernels.AttentionShape) {
	b.Backend.SplitGates(qkv, b.reordered(x, s), s)
}

func (b gatesLast) OutputGate(out, att, x kernels.Buffer, s kernels.AttentionShape) {
	b.Backend.OutputGate(out, att, b.reordered(x, s), s)
}

// backwards copies the last pair first.
type backwards struct{ kernels.Backend }

func (b backwards) CopyStates(x, pairs kernels.Buffer, n int) {
	for i := pairs.Len() - 2; i >= 0; i -= 2 {
		b.Backend.CopyStates(x, pairs.Slice(i, i+2), n)
	}
}

// unlimited knows no limits of time steps.
type unlimited struct{ kernels.Backend }

func (b unlimited) DeltaGates(gates, x, logs, bias, skip kernels.Buffer, s kernels.DeltaShape) {
	s.Low, s.High = 0, 0
	b.Backend.DeltaGates(gates, x, logs, bias, skip, s)
}

// biasless adds no bias.
type biasless struct{ kernels.Backend }

func (b biasless) ShortConv(u, x, weight, _, tails kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	b.Backend.ShortConv(u, x, weight, kernels.Buffer{}, tails, r, s)
}

func (b biasless) ShortConvBackward(dx, dweight, dbias, du, x, weight, bias, blocks kernels.Buffer, r kernels.Runs,
	s kernels.DeltaShape) {
	if !bias.Empty() {
		dbias = copied(b, dbias)
	}
	b.Backend.ShortConvBackward(dx, dweight, dbias, du, x, weight, bias, blocks, r, s)
}

// skipless has no skip.
type skipless struct{ kernels.Backend }

func (b skipless) DeltaGates(gates, x, logs, bias, skip kernels.Buffer, s kernels.DeltaShape) {
	if s.Scan {
		skip = copied(b, skip)
		clear(kernels.Elems[float32](skip))
	}
	b.Backend.DeltaGates(gates, x, logs, bias, skip, s)
}

// gateLast normalises without gates, which are far above 0.
type gateLast struct{ kernels.Backend }

func (b gateLast) GroupedNorm(out, rstd, x, p, weight kernels.Buffer, s kernels.DeltaShape, eps float64) {
	y := copied(b, p)
	for i := range kernels.Elems[float32](y) {
		kernels.Elems[float32](y)[i] = 30
	}
	b.Backend.GroupedNorm(out, rstd, x, y, weight, s, eps)
}
