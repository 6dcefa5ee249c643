package cpu

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"exp/kernels"
)

// Small buffers are cleared; large ones take huge pages where they are used.
func TestResident(t *testing.T) {
	for _, tt := range []struct{ bytes, used, want int }{
		{100, 1, 100}, {4<<20 - 1, 0, 4<<20 - 1}, {4 << 20, 0, 0}, {4 << 20, 1, 2 << 20}, {9 << 20, 2 << 20, 2 << 20},
		{9 << 20, 2<<20 + 1, 4 << 20}, {9 << 20, 9 << 20, 9 << 20},
	} {
		if got := Resident(tt.bytes, tt.used); got != tt.want {
			t.Errorf("%d of %d bytes: %d, want %d", tt.used, tt.bytes, got, tt.want)
		}
	}
}

// Memory is zero and starts on a cache line, whatever its size and whatever was there
// before; every byte of it can be written.
func TestAllocGivesZeros(t *testing.T) {
	b := open(t, Portable, 1)
	const large = 4 << 20 // bytes, from which on memory comes from the system itself
	for _, n := range []int{1, 15, 4096, large/4 - 1, large / 4, large/4 + 1, 9<<20/4 + 3} {
		for round := range 2 {
			x, err := b.Alloc(kernels.F32, n)
			if err != nil {
				t.Fatal(err)
			}
			if uintptr(unsafe.Pointer(x.Addr()))%64 != 0 {
				t.Errorf("%d elements are at %p", n, x.Addr())
			}
			for i, v := range kernels.Elems[float32](x) {
				if v != 0 {
					t.Fatalf("round %d: element %d of %d is %g", round, i, n, v)
				}
				kernels.Elems[float32](x)[i] = 1
			}
			b.Free(x)
		}
	}
	if got := b.Allocated(); got != 0 {
		t.Errorf("%d bytes are allocated after all were freed", got)
	}
}

// What nobody touches takes no memory.
func TestAllocTakesMemoryWhenTouched(t *testing.T) {
	b := open(t, Portable, 1)
	before := residentPages(t)
	x, err := b.Alloc(kernels.F32, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Free(x)
	if got := (residentPages(t) - before) * os.Getpagesize() >> 20; got > 64 {
		t.Errorf("256 MiB that were not touched take %d MiB", got)
	}
}

// A touched byte of a sparse buffer takes a small page, whatever the system would rather give.
func TestAllocSparseTakesSmallPages(t *testing.T) {
	b := open(t, Portable, 1)
	before := residentPages(t)
	x, err := b.AllocSparse(kernels.F32, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Free(x)
	v := kernels.Elems[float32](x)
	for i := 0; i < len(v); i += 1 << 20 { // 64 places, 4 MiB apart: 128 MiB of huge pages
		v[i] = 1
	}
	if got := (residentPages(t) - before) * os.Getpagesize() >> 20; got > 64 {
		t.Errorf("64 touched places take %d MiB", got)
	}
}

// residentPages is how many pages of this process are in memory.
func residentPages(t *testing.T) (n int) {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("this system does not tell how much memory a process has: ", err)
	}
	if _, err := fmt.Fscan(strings.NewReader(string(raw)), new(int), &n); err != nil {
		t.Fatal(err)
	}
	return n
}
