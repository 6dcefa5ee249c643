package kerneltest

import (
	binary "math/bits"
	"sync"
)

// rooms keeps the slices of discarded images, by type and by the number of bits of their capacity, a power of two:
// the suite fills so many that to zero new ones and to collect them takes a tenth of its time.
type rooms[E any] [64]sync.Pool

var (
	floatRooms  rooms[float32]
	intRooms    rooms[int32]
	doubleRooms rooms[float64]
)

func roomsOf[E any]() *rooms[E] {
	var r any
	switch any(*new(E)).(type) {
	case float32:
		r = &floatRooms
	case int32:
		r = &intRooms
	default:
		r = &doubleRooms
	}
	return r.(*rooms[E])
}

// newRoom returns n elements with any content.
func newRoom[E any](n int) []E {
	size := binary.Len(uint(max(n, 1) - 1))
	if x, ok := roomsOf[E]()[size].Get().(*[]E); ok {
		return (*x)[:n]
	}
	return make([]E, n, 1<<size)
}

// discard gives back the memory of an image from newRoom, which nobody uses any more.
func (v image) discard() {
	switch {
	case v.i != nil:
		discard(v.i)
	case v.d != nil:
		discard(v.d)
	default:
		discard(v.f)
	}
}

func discard[E any](x []E) {
	if cap(x) > 0 {
		roomsOf[E]()[binary.Len(uint(cap(x)-1))].Put(&x)
	}
}
