package tensor

import "exp/kernels"

// parts returns room for the ranks' parts of the columns of x, one part after another.
func (b *Backend) parts(x kernels.Buffer) kernels.Buffer { return b.room("parts", x.DType(), x.Len()) }

// own returns the room for this rank's part of the columns of x.
func (b *Backend) own(x kernels.Buffer) kernels.Buffer {
	lo, hi := b.part(x.Len())
	return b.parts(x).Slice(lo, hi)
}

// ownStats is own of attention's stats, which are needed beside another part.
func (b *Backend) ownStats(x kernels.Buffer) (all, own kernels.Buffer) {
	all = b.room("parts of stats", x.DType(), x.Len())
	lo, hi := b.part(x.Len())
	return all, all.Slice(lo, hi)
}

// gather sets out [M,N] to the ranks' parts of its columns; this rank's lies in own(out).
func (b *Backend) gather(out kernels.Buffer, N int) {
	if out.Empty() {
		b.Sync()
		return
	}
	b.gatherParts(out, b.parts(out), N)
}

// gatherParts sets out [M,N] to the ranks' parts of its columns; all holds this rank's.
func (b *Backend) gatherParts(out, all kernels.Buffer, N int) {
	size, M := b.group.Size(), out.Len()/N
	b.complete(all, 1, b.ends(all.Len()))
	rows := b.list("rows of parts", [4]int{M}, int(M*size), func(to []int32) {
		for i := range to {
			to[i] = int32(int(i%size*M) + i/size)
		}
	})
	b.GatherRows(out, all, rows, N/size)
}

// list returns n row numbers on the device, which fill sets. Lists for one use and key are equal.
func (b *Backend) list(what string, key [4]int, n int, fill func(to []int32)) kernels.Buffer {
	if b.lists[what] != key {
		to := make([]int32, n)
		fill(to)
		b.lists[what] = key
		return b.upload(what, to)
	}
	return b.room(what, kernels.I32, n)
}

// upload returns a room with numbers.
func (b *Backend) upload(what string, x []int32) kernels.Buffer {
	to := b.room(what, kernels.I32, len(x))
	b.Copy(to, kernels.Host(x))
	b.Sync()
	return to
}

// download returns numbers from the device.
func (b *Backend) download(x kernels.Buffer) []int32 {
	to := make([]int32, x.Len())
	b.Copy(kernels.Host(to), x)
	b.Sync()
	return to
}
