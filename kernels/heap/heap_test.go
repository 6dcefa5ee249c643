package heap

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
)

// resident returns the process's resident memory in MiB.
func resident(t *testing.T) int {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc:", err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize() >> 20
}

// Small blocks in use between large free ones keep the heap from shrinking by itself.
func TestTrim(t *testing.T) {
	be, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	alloc := func(n int) kernels.Buffer {
		b, err := be.Alloc(kernels.F32, n)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var large, small []kernels.Buffer
	for range 100 {
		large, small = append(large, alloc(1<<18)), append(small, alloc(16)) // 1 MiB
	}
	for _, b := range large {
		be.Free(b)
	}
	before := resident(t)
	Trim()
	if after := resident(t); before-after < 50 && before > 120 {
		t.Errorf("Trim gave back %d of %d MiB; 100 were free", before-after, before)
	}
	for _, b := range small {
		be.Free(b)
	}
}
