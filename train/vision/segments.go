package vision

import "exp/kernels"

// segments are the parts of an image that attend within themselves, and where their keys and queries are.
type segments struct {
	pages, groups, width int // pages of keys; rows of queries; pages of the longest segment

	host places

	slots kernels.Buffer // [N] the place of a patch's key in the pages
	table kernels.Buffer // [segments,width]
	seq   kernels.Buffer // [groups] the segment of a row of queries
	last  kernels.Buffer // [groups] its last position
	join  kernels.Buffer // [groups·(together+2)·H] the heads of qkv that make rows of queries
	part  kernels.Buffer // [N·H] the heads of answers that make attention's output
}

// places are the contents of the buffers of segments.
type places struct{ slots, table, seq, last, join, part []int32 }

// segments returns the places of segments, which are lists of patches.
func (c Config) segments(lists [][]int32) (s segments) {
	H, n := c.Heads, 0
	for _, list := range lists {
		s.width = max(s.width, (len(list)+pageSize-1)/pageSize)
		n += len(list)
	}
	x := &s.host
	x.slots, x.part = make([]int32, n), make([]int32, n*H)
	x.table = make([]int32, len(lists)*s.width)
	for i, list := range lists {
		for k := range (len(list) + pageSize - 1) / pageSize {
			x.table[i*s.width+k] = int32(s.pages + k)
		}
		for at, patch := range list {
			x.slots[patch] = int32(s.pages*pageSize + at)
		}
		s.pages += (len(list) + pageSize - 1) / pageSize
		for lo := 0; lo < len(list); lo += together {
			x.seq, x.last = append(x.seq, int32(i)), append(x.last, int32(len(list)-1))
			x.group(s.groups, list[lo:min(lo+together, len(list))], H)
			s.groups++
		}
	}
	return s
}

// group adds row g of queries, of patches of one segment: head h of the i-th is head h·together+i of the row, so that
// `together` query heads in a row share a key head. Missing patches are the first again, and so are the row's keys and
// values, which nobody reads.
func (x *places) group(g int, patches []int32, H int) {
	for h := range H {
		for i := range together {
			patch := patches[0]
			if i < len(patches) {
				patch = patches[i]
				x.part[int(patch)*H+h] = int32((g*H+h)*together + i)
			}
			x.join = append(x.join, patch*int32(3*H)+int32(h))
		}
	}
	for range 2 * H {
		x.join = append(x.join, patches[0]*int32(3*H))
	}
}

// filled is a buffer and its contents.
type filled struct {
	into *kernels.Buffer
	list []int32
}

func (s *segments) buffers() []filled {
	x := &s.host
	return []filled{{&s.slots, x.slots}, {&s.table, x.table}, {&s.seq, x.seq}, {&s.last, x.last}, {&s.join, x.join},
		{&s.part, x.part}}
}

// plan adds the memory of the buffers.
func (s *segments) plan(r *rooms) {
	for _, b := range s.buffers() {
		r.add(b.into, kernels.I32, len(b.list))
	}
}

// load fills the buffers.
func (s *segments) load(be kernels.Backend) {
	for _, b := range s.buffers() {
		be.Copy(*b.into, kernels.Host(b.list))
	}
}
