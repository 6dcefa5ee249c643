package vision

import "exp/kernels"

// turn changes the order of columns between files and memory for a turned map (linearSpec) of a tower that learns, or
// has adapters: a row [C,unit] of the files is a row [unit,C] in memory.
type turn struct {
	files  kernels.Buffer // [Out,In] the weights in the arena, as in the files; empty: they are frozen
	out    int
	in     int
	rows   int      // at once
	memory integers // [rows·In] where each element of rows in memory is in the files
	back   integers // [rows·In] where each element of rows in the files is in memory
}

// turnElems bounds the elements that are turned at once, unless a row has more.
const turnElems = 1 << 18

// newTurn returns the turn of a map [out,in].
func newTurn(out, in, unit int) *turn {
	x := &turn{out: out, in: in, rows: min(out, max(1, turnElems/in))}
	places := count(in)
	for row := range x.rows {
		for _, at := range patchwiseRows(places, in, unit) {
			x.memory.host = append(x.memory.host, int32(row*in)+at)
		}
		for _, at := range patchwiseRows(places, in, in/unit) { // the inverse
			x.back.host = append(x.back.host, int32(row*in)+at)
		}
	}
	return x
}

// plan adds the memory of the weights, into, and of the places of columns.
func (x *turn) plan(r *rooms, into *kernels.Buffer, float kernels.DType) {
	r.add(into, float, x.out*x.in)
	x.planPlaces(r)
}

// planPlaces is plan without weights.
func (x *turn) planPlaces(r *rooms) {
	x.memory.plan(r)
	x.back.plan(r)
}

func (x *turn) load(be kernels.Backend) {
	x.memory.load(be)
	x.back.load(be)
	be.Sync()
}

// weights sets w [Out,In] to the arena's weights in memory's order.
func (x *turn) weights(be kernels.Backend, w kernels.Buffer) { x.move(be, w, x.files, x.memory.dev) }

// toFiles sets out [rows,In] to rows of in, which are in memory's order, in the files'.
func (x *turn) toFiles(be kernels.Backend, out, in kernels.Buffer) { x.move(be, out, in, x.back.dev) }

// toMemory sets out [rows,In] to rows of in, which are in the files' order, in memory's.
func (x *turn) toMemory(be kernels.Backend, out, in kernels.Buffer) {
	x.move(be, out, in, x.memory.dev)
}

func (x *turn) move(be kernels.Backend, out, in, places kernels.Buffer) {
	for lo, step := 0, x.rows*x.in; lo < out.Len(); lo += step {
		hi := min(lo+step, out.Len())
		be.GatherRows(out.Slice(lo, hi), in.Slice(lo, hi), places.Slice(0, hi-lo), 1)
	}
}
