package cuda

import "exp/kernels"

// How the gradients of linear attention use a device: the most columns of a state in a block, and the blocks of a
// launch; the channels of heads whose states lie in registers, the elements of other states and all elements that a
// block has in shared memory; the rows from one kept state to the next; and the elements of kept states and of
// gradients beyond which heads wait for others. args.h has some of these for kernels.
const (
	deltaColumns  = 128
	deltaBlocks   = 256
	deltaKey      = 128
	deltaState    = 1 << 14
	deltaShared   = 24 << 10
	deltaKeep     = 32
	deltaKeptRoom = 1 << 27
)

// inRegisters reports whether a thread holds a column of a state in registers. Published models with Gated DeltaNet
// have such heads.
func inRegisters(s kernels.DeltaShape) bool {
	return s.KeyDim == deltaKey && s.ValueDim == deltaKey && !s.Scan
}

// deltaTile returns the columns of a block: whole lane sums, or all.
func deltaTile(s kernels.DeltaShape) int {
	most := deltaColumns
	if !inRegisters(s) {
		most = max(min(most, deltaState/s.KeyDim/kernels.Lanes*kernels.Lanes), kernels.Lanes)
	}
	return min(most, s.ValueDim)
}

// deltaShare returns the elements of shared memory that a block has for a state outside registers: rows, and its
// columns of a state.
func deltaShare(s kernels.DeltaShape, back bool) int {
	const sums = 2 * deltaColumns / kernels.Lanes
	rows := 4 * s.KeyDim
	if back {
		rows = (2+sums)*s.KeyDim + sums*3/2 // of three gates
	}
	return rows + deltaTile(s)*s.KeyDim
}

// DeltaFits reports whether the kernels can take heads of a shape through linear attention, and back if it learns.
// Only keys of several hundred channels do not fit.
func DeltaFits(s kernels.DeltaShape, learns bool) bool {
	if s.Conv || inRegisters(s) {
		return true
	}
	return deltaShare(s, false) <= deltaShared && (!learns || deltaShare(s, true) <= deltaShared)
}

// deltaFar returns how far elements of a column lie apart in memory.
func deltaFar(s kernels.DeltaShape) int {
	if s.KeyDim == deltaKey {
		return deltaColumns
	}
	return deltaTile(s)
}

// rooms are the parts of the memory of DeltaRuleBackward, in elements, and how it divides its work.
type rooms struct {
	lengths, dqk, kept, starts, between int
	heads, columns, keptRows            int // key heads and columns at a time, kept states of a value head
}

func (r rooms) all() int { return r.lengths + r.dqk + r.kept + r.starts + r.between }

// deltaRoom returns the memory for M rows of S sequences, with about `most` elements of kept states and gradients.
func deltaRoom(s kernels.DeltaShape, M, S int, grouped bool, most int) rooms {
	r := rooms{lengths: M * 2 * s.Keys, dqk: M * 2 * s.Keys * s.KeyDim, columns: deltaTile(s)}
	r.keptRows = M/deltaKeep + S
	states, each := r.keptRows, s.KeyDim*deltaFar(s)
	if grouped {
		states += S
	}
	r.heads = min(max(most/max(states*each, 1), 1), s.Keys)
	r.kept = r.heads * r.keptRows * each
	r.starts = r.heads*states*each - r.kept
	r.between = min(S*r.heads, deltaBlocks) * deltaKeep * (each + deltaFar(s))
	return r
}

// DeltaScratch returns the most elements of workspace that a layer with linear attention takes, for up to M rows of
// up to S sequences.
func DeltaScratch(s kernels.DeltaShape, M, S int, learns bool) int {
	blocks := M/kernels.BlockRows + S
	switch {
	case s.Conv && !learns:
		return 0
	case s.Conv:
		return (M + blocks*s.Taps) * s.Mixed()
	}
	r := deltaRoom(s, M, S, true, deltaKeptRoom)
	if !learns {
		return r.lengths
	}
	state := s.KeyDim * deltaFar(s)
	states := (r.keptRows + S) * state // of a head
	r.kept, r.starts = max(states, min(s.Keys*states, deltaKeptRoom)), 0
	r.between = min(S*s.Keys, deltaBlocks) * deltaKeep * (state + deltaFar(s))
	norm := s.ValueDim
	if s.Scan {
		norm = s.Out()
	}
	return max(r.all(), M*s.Mixed()+blocks*s.Mixed()*(s.Taps+1), blocks*s.Gates(), blocks*norm)
}
