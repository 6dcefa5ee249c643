package vision

import "exp/kernels"

// rooms are buffers allocated together, one allocation for each type.
type rooms []room

type room struct {
	into *kernels.Buffer
	t    kernels.DType
	n    int
}

func (r *rooms) add(into *kernels.Buffer, t kernels.DType, n int) { *r = append(*r, room{into, t, n}) }

// roomAlign is the elements that buffers are aligned to, so that none share a cache line.
const roomAlign = 128

func aligned(n int) int { return (n + roomAlign - 1) / roomAlign * roomAlign }

// lengths returns the elements of each type.
func (r rooms) lengths() map[kernels.DType]int {
	all := map[kernels.DType]int{}
	for _, x := range r {
		all[x.t] += aligned(x.n)
	}
	return all
}

// bytes returns the memory of all.
func (r rooms) bytes() (n int64) {
	for t, k := range r.lengths() {
		n += int64(k) * int64(t.Size())
	}
	return n
}

// use allocates the activations of a pass and returns what frees them. It panics with a *kernels.RoomError if the
// device has no room.
func (r rooms) use(be kernels.Backend) (free func()) {
	owned, err := r.take(be, kernels.ActivationRoom)
	if err != nil {
		panic(err)
	}
	return func() {
		for _, b := range owned {
			be.Free(b)
		}
	}
}

// take allocates everything and returns the buffers to free; on an error it frees them itself.
func (r rooms) take(be kernels.Backend, part kernels.Part) (owned []kernels.Buffer, err error) {
	left := map[kernels.DType]kernels.Buffer{}
	for _, t := range []kernels.DType{kernels.F32, kernels.F64, kernels.BF16, kernels.I32} {
		n := r.lengths()[t]
		if n == 0 {
			continue
		}
		all, err := be.Alloc(t, n)
		if err != nil {
			for _, x := range owned {
				be.Free(x)
			}
			return nil, &kernels.RoomError{Part: part, Err: err}
		}
		owned, left[t] = append(owned, all), all
	}
	for _, x := range r {
		all := left[x.t]
		*x.into, left[x.t] = all.Slice(0, x.n), all.Slice(aligned(x.n), all.Len())
	}
	return owned, nil
}
