package blob

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Each blob has its own result, in the order of the list, and progress ends with all of them.
func TestVerifyAll(t *testing.T) {
	d := At(t.TempDir())
	list := make([]Recorded, 5)
	var total int64
	for i := range list {
		content := strings.Repeat("blob ", i*i) + "end"
		digest, err := d.PutBytes([]byte(content))
		if err != nil {
			t.Fatal(err)
		}
		list[i] = Recorded{digest, int64(len(content))}
		total += list[i].Size
	}
	overwrite(t, d.Path(list[1].Digest), "blob eni")
	if err := os.Remove(d.Path(list[3].Digest)); err != nil {
		t.Fatal(err)
	}
	blobs, size := 0, int64(0)
	errs := d.VerifyAll(t.Context(), list, func(n int, bytes int64) {
		if n != blobs+1 || bytes < size {
			t.Errorf("progress from %d blobs and %d bytes to %d and %d", blobs, size, n, bytes)
		}
		blobs, size = n, bytes
	})
	if blobs != len(list) || size != total {
		t.Errorf("progress ended with %d blobs and %d bytes, want %d and %d", blobs, size, len(list), total)
	}
	for i, want := range []error{nil, ErrCorrupt, nil, fs.ErrNotExist, nil} {
		if !errors.Is(errs[i], want) {
			t.Errorf("blob %d: error %v, want %v", i, errs[i], want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i, err := range d.VerifyAll(ctx, list, nil) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("blob %d after the end: error %v", i, err)
		}
	}
}

// BenchmarkVerifyAll hashes four blobs for each core, on one core and on all in turns, and reports the
// best of both speeds and what share of all cores' speed that is: a busy machine needs many turns.
// GODEBUG=cpu.sha=off makes a processor without SHA instructions.
func BenchmarkVerifyAll(b *testing.B) {
	d := At(b.TempDir())
	cores := runtime.GOMAXPROCS(0)
	list := make([]Recorded, 4*cores)
	content := make([]byte, 2<<20)
	for i := range list {
		content[i]++
		digest, n, err := d.Put(bytes.NewReader(content))
		if err != nil {
			b.Fatal(err)
		}
		list[i] = Recorded{digest, n}
	}
	took := [2]time.Duration{time.Hour, time.Hour}
	for b.Loop() {
		for i, n := range []int{1, cores} {
			runtime.GOMAXPROCS(n)
			start := time.Now()
			if err := errors.Join(d.VerifyAll(b.Context(), list, nil)...); err != nil {
				b.Fatal(err)
			}
			took[i] = min(took[i], time.Since(start))
		}
	}
	size := float64(len(list) * len(content))
	b.ReportMetric(size/took[0].Seconds()/1e9, "GB/s-one-core")
	b.ReportMetric(size/took[1].Seconds()/1e9, "GB/s")
	b.ReportMetric(took[0].Seconds()/took[1].Seconds()/float64(cores), "of-all-cores")
}
