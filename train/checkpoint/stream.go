package checkpoint

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"exp/kernels"
)

// Want is a tensor for Stream to deliver.
type Want struct {
	Name string
	// As is the type of the pieces: the file's own, with BF16 as raw bits; or F32 or F64.
	// F32, F16 and BF16 widen exactly; F64 is rounded.
	As kernels.DType
	// Align makes every piece except a tensor's last hold a multiple of this many elements:
	// whole rows, for a caller that packs rows. 0 means 1.
	Align int
}

const (
	// pieceBytes is the size of a delivered piece: large enough that the seams cost
	// nothing. A few pieces are in Go's heap, which may grow to twice what is in it.
	pieceBytes = 2 << 20
	// partBytes is the amount that one goroutine reads at a time: it stays in a core's
	// cache during conversion.
	partBytes = 256 << 10
)

// Stream reads tensors in the requested order and calls f for every piece of them, elements
// [from, from+piece.Len()) of want w, in order. The piece is host memory that f must not
// keep. While f runs, several goroutines read and convert the next pieces. An error of f
// ends Stream and is returned. It panics if a tensor does not exist or cannot be delivered
// in that type.
//
// It reads files instead of mapping them: a file truncated meanwhile gives an error, not a
// signal.
func (t *Tensors) Stream(wants []Want, f func(w Want, piece kernels.Buffer, from int) error) error {
	var jobs []job
	for _, w := range wants {
		p := t.mustFit(w.Name, w.As)
		align := max(w.Align, 1)
		step := max(pieceBytes/w.As.Size()/align, 1) * align
		for from := 0; from < p.Len(); from += step {
			jobs = append(jobs, job{place: p, as: w.As, from: from, n: min(step, p.Len()-from), want: w})
		}
	}
	r := readAhead(jobs)
	defer r.stop()
	for _, j := range jobs {
		b, err := r.take()
		if err != nil {
			return err
		}
		if err := f(j.want, b, j.from); err != nil {
			return err
		}
	}
	return nil
}

// mustFit returns the place of a tensor that can be delivered as a type.
func (t *Tensors) mustFit(name string, as kernels.DType) place {
	p, ok := t.where[name]
	if !ok || !p.DType.fits(as) {
		panic("checkpoint: no tensor for the buffer of " + name)
	}
	return p
}

// job is a piece to be read.
type job struct {
	place
	as      kernels.DType
	from, n int // elements
	want    Want
}

// at is the offset of the job's elements in the tensor's bytes.
func (j job) at() int64 { return int64(j.from) * int64(j.DType.bits()/8) }

// bytes is their size in the files.
func (j job) bytes() int64 { return int64(j.n) * int64(j.DType.bits()/8) }

// view returns memory as n elements of a type.
func view(p []uint64, t kernels.DType, n int) kernels.Buffer {
	if n == 0 {
		return kernels.Host[float32](nil)
	}
	at := unsafe.Pointer(&p[0])
	switch t {
	case kernels.BF16:
		return kernels.HostBits(unsafe.Slice((*uint16)(at), n))
	case kernels.F64:
		return kernels.Host(unsafe.Slice((*float64)(at), n))
	case kernels.I32:
		return kernels.Host(unsafe.Slice((*int32)(at), n))
	}
	return kernels.Host(unsafe.Slice((*float32)(at), n))
}

// float32sOf returns the elements of host memory of type F32.
func float32sOf(b kernels.Buffer) []float32 { return unsafe.Slice((*float32)(b.Addr()), b.Len()) }

// read fills memory with the job's elements, by several goroutines.
func (j job) read(p []uint64) error {
	if j.n == 0 {
		return nil
	}
	size, at := j.DType.bits()/8, j.at()
	per := max(partBytes, int(j.data.Grain())) / size
	parts := (j.n + per - 1) / per
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, min(max(runtime.GOMAXPROCS(0), 2), 8, parts))
	for w := range errs {
		wg.Go(func() {
			var scratch []byte
			for errs[w] == nil {
				lo := int(next.Add(1)-1) * per
				if lo >= j.n {
					return
				}
				n := min(per, j.n-lo)
				scratch, errs[w] = j.part(p, lo, n, at+int64(lo*size), scratch)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// part reads n elements into place lo of p.
func (j job) part(p []uint64, lo, n int, at int64, scratch []byte) ([]byte, error) {
	out := unsafe.Slice((*byte)(unsafe.Pointer(&p[0])), len(p)*8)[lo*j.as.Size():][:n*j.as.Size()]
	if hostOrder() && j.DType == dtypeNamed(j.as) {
		return scratch, j.readAt(out, at)
	}
	size := n * j.DType.bits() / 8
	if len(scratch) < size { // the first part is the largest
		scratch = make([]byte, size)
	}
	raw := scratch[:size]
	if err := j.readAt(raw, at); err != nil {
		return scratch, err
	}
	j.DType.widen(view(p, j.as, lo+n).Slice(lo, lo+n), raw)
	return scratch, nil
}

// readAt reads bytes of the tensor.
func (j job) readAt(b []byte, at int64) error {
	_, err := j.data.ReadAt(b, at)
	return ofTensor(j.Name, err)
}

// hostOrder reports whether this machine has the files' byte order.
func hostOrder() bool { return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 }

// dtypeNamed is dtypeOf with BF16.
func dtypeNamed(t kernels.DType) DType {
	if t == kernels.BF16 {
		return BF16
	}
	return dtypeOf(t)
}

// widen sets dst to the little-endian elements of raw.
func (t DType) widen(dst kernels.Buffer, raw []byte) {
	switch dst.DType() {
	case kernels.BF16:
		decode(kernels.Bits(dst), raw)
	case kernels.I32:
		decode(kernels.Elems[int32](dst), raw)
	case kernels.F64:
		d := kernels.Elems[float64](dst)
		if t == F64 {
			decode(d, raw)
			return
		}
		narrow := make([]float32, len(d))
		t.float32s(narrow, raw)
		for i, f := range narrow {
			d[i] = float64(f)
		}
	default:
		t.float32s(kernels.Elems[float32](dst), raw)
	}
}

// byPlace sorts wants by their place on disk.
func (t *Tensors) byPlace(wants []Want) {
	order := map[*os.File]int{}
	for i, f := range t.files {
		order[f] = i
	}
	slices.SortStableFunc(wants, func(a, b Want) int {
		x, y := t.where[a.Name], t.where[b.Name]
		if x.file != y.file {
			return order[x.file] - order[y.file]
		}
		return int(min(max(x.begin-y.begin, math.MinInt32), math.MaxInt32))
	})
}
