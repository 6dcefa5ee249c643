package model

import (
	"slices"

	"exp/kernels"
)

// adjustRoom is where a step's adjustments of logits go on the device, some rows at a time. It allocates nothing
// before the first and little then: most samplers never need it.
type adjustRoom struct {
	ids, before, factor, after kernels.Buffer
	parts                      []adjustPart // of a step: copies read them until its end
	used                       int
}

// adjustPart is what rows that are drawn together have, [rows,K] each.
type adjustPart struct {
	ids                   []int32
	before, factor, after []float32
}

// adjustedAtOnce bounds the adjustments of rows that are drawn together, unless one row has more: 4 MiB.
const adjustedAtOnce = 1 << 18

func (x *adjustRoom) close(be kernels.Backend) {
	for _, b := range []*kernels.Buffer{&x.ids, &x.before, &x.factor, &x.after} {
		be.Free(*b)
		*b = kernels.Buffer{}
	}
}

// next loads the adjustments of the first of some rows, as many as fit, and returns how many rows these are.
func (x *adjustRoom) next(m *Model, rows [][]Adjustment) (n int, a kernels.Adjustments) {
	K := 0
	for n < len(rows) && (n == 0 || (n+1)*max(K, len(rows[n])) <= adjustedAtOnce) {
		K = max(K, len(rows[n]))
		n++
	}
	if K == 0 {
		return n, a
	}
	if x.used == len(x.parts) {
		x.parts = append(x.parts, adjustPart{})
	}
	p := &x.parts[x.used]
	x.used++
	p.fill(rows[:n], K, float32(m.Config.logitDivisor()))
	x.grow(m.be, n*K)
	load := func(dst, src kernels.Buffer) kernels.Buffer {
		dst = dst.Slice(0, n*K)
		m.be.Copy(dst, src)
		return dst
	}
	return n, kernels.Adjustments{IDs: load(x.ids, kernels.Host(p.ids)),
		Before: load(x.before, kernels.Host(p.before)),
		Factor: load(x.factor, kernels.Host(p.factor)), After: load(x.after, kernels.Host(p.after))}
}

// fill sets p to K adjustments for each row; the engine's logits are the model's times unit.
func (p *adjustPart) fill(rows [][]Adjustment, K int, unit float32) {
	p.ids, p.before, p.factor, p.after = p.ids[:0], p.before[:0], p.factor[:0], p.after[:0]
	for _, list := range rows {
		for _, a := range list {
			p.ids, p.factor = append(p.ids, a.Token), append(p.factor, a.Factor)
			p.before, p.after = append(p.before, a.Before*unit), append(p.after, a.After*unit)
		}
		none := K - len(list)
		p.ids = append(p.ids, slices.Repeat([]int32{-1}, none)...)
		zeros := make([]float32, none)
		p.before, p.factor, p.after = append(p.before, zeros...), append(p.factor, zeros...), append(p.after, zeros...)
	}
}

// grow makes room for n adjustments. It panics if the device has no memory left.
func (x *adjustRoom) grow(be kernels.Backend, n int) {
	if x.ids.Len() >= n {
		return
	}
	room := max(n, min(2*n, adjustedAtOnce))
	for b, t := range map[*kernels.Buffer]kernels.DType{&x.ids: kernels.I32, &x.before: be.Float(),
		&x.factor: be.Float(), &x.after: be.Float()} {
		be.Free(*b)
		bigger, err := be.Alloc(t, room)
		if err != nil {
			panic(&kernels.RoomError{Part: kernels.StepRoom, Err: err})
		}
		*b = bigger
	}
}
