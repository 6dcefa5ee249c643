package checkpoint

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"exp/kernels"
)

// Want is a tensor that Stream delivers.
type Want struct {
	Name string
	// As is the type of the pieces: that of the file, with BF16 as the bits that the file
	// has; or F32 or F64, to which F32, F16 and BF16 widen exactly, and F64 is rounded.
	As kernels.DType
	// Align makes every piece but a tensor's last hold a multiple of so many elements:
	// whole rows, for one that packs rows. 0 is 1.
	Align int
}

const (
	// pieceBytes is how much is delivered at a time: enough that the seams cost nothing,
	// and little beside any model. Two pieces are in memory, one while the other is read.
	pieceBytes = 8 << 20
	// partBytes is what one goroutine reads at a time: it stays in a core's cache while
	// it is converted.
	partBytes = 256 << 10
	// aheadBytes is what the system is asked to bring from the disk in advance.
	aheadBytes = 64 << 20
)

// Stream reads tensors in the order that is asked for and calls f for every piece of
// them, elements [from, from+piece.Len()) of want w, in order. The piece is host memory
// that f must not keep. While f works, the next piece is read and converted by several
// goroutines. An error of f ends it and is returned. It panics if there is no such tensor
// or it cannot be had in that type.
//
// Files are read and not mapped: one that is cut short meanwhile is an error, not a
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
	var r reader
	defer r.stop()
	for i, j := range jobs {
		b, err := r.take(j)
		if err != nil {
			return err
		}
		if i+1 < len(jobs) {
			r.start(jobs[i+1])
		}
		if err := f(j.want, b, j.from); err != nil {
			return err
		}
	}
	return nil
}

// RowReader reads rows of tensors where they are asked for. It reads ahead: the rows
// after those that were asked for last are there when they are asked for next. It is
// used by one goroutine; close it after use.
type RowReader struct {
	t  *Tensors
	as kernels.DType
	r  reader
}

// Rows returns a reader of rows in type as, as Want has it.
func (t *Tensors) Rows(as kernels.DType) *RowReader { return &RowReader{t: t, as: as} }

// Read returns rows [from, from+n) of a tensor, whose row is an index of its first
// dimension; a vector is one row. The buffer is host memory that stays until the next
// call. It panics if there are no such rows.
func (r *RowReader) Read(name string, from, n int) (kernels.Buffer, error) {
	p := r.t.mustFit(name, r.as)
	rows, width := 1, p.Len()
	if len(p.Shape) > 1 {
		rows, width = p.Shape[0], p.Len()/max(p.Shape[0], 1)
	}
	if from < 0 || n < 0 || from+n > rows {
		panic("checkpoint: no such rows of " + name)
	}
	b, err := r.r.take(job{place: p, as: r.as, from: from * width, n: n * width})
	if next := min(n, rows-from-n); err == nil && next > 0 {
		r.r.start(job{place: p, as: r.as, from: (from + n) * width, n: next * width})
	}
	return b, err
}

// Close waits until nothing is read ahead any more.
func (r *RowReader) Close() { r.r.stop() }

// mustFit returns where a tensor lies that can be had as a type.
func (t *Tensors) mustFit(name string, as kernels.DType) place {
	p, ok := t.where[name]
	if !ok || !p.DType.fits(as) {
		panic("checkpoint: no tensor for the buffer of " + name)
	}
	return p
}

// job is a piece that is to be read.
type job struct {
	place
	as      kernels.DType
	from, n int // elements
	want    Want
}

func (j job) same(o job) bool {
	return j.Name == o.Name && j.file == o.file && j.as == o.as && j.from == o.from && j.n == o.n
}

// reader holds the piece that is in use and the one that is read.
type reader struct {
	pieces [2][]uint64 // aligned for every type of elements
	ahead  job
	done   chan error // of ahead; nil: nothing is read
	next   int        // the piece that ahead is read into
}

// start begins to read a piece in the background.
func (r *reader) start(j job) {
	r.stop()
	done := make(chan error, 1)
	r.ahead, r.done = j, done
	p := r.room(r.next, j)
	go func() { done <- j.read(p) }()
}

// take returns a piece: the one that was read ahead, if it is that.
func (r *reader) take(j job) (kernels.Buffer, error) {
	if r.done == nil || !r.ahead.same(j) {
		r.start(j)
	}
	err := <-r.done
	r.done = nil
	p := r.pieces[r.next]
	r.next = 1 - r.next
	if err != nil {
		return kernels.Buffer{}, err
	}
	return view(p, j.as, j.n), nil
}

// stop waits for what is read ahead and drops it.
func (r *reader) stop() {
	if r.done != nil {
		<-r.done
		r.done = nil
	}
}

// room returns memory for a piece.
func (r *reader) room(i int, j job) []uint64 {
	words := (j.n*j.as.Size() + 7) / 8
	if len(r.pieces[i]) < words {
		r.pieces[i] = make([]uint64, words)
	}
	return r.pieces[i]
}

// view is memory as n elements of a type.
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

// read fills memory with the job's elements, by several goroutines.
func (j job) read(p []uint64) error {
	if j.n == 0 {
		return nil
	}
	size := j.DType.bits() / 8
	at := j.begin + int64(j.from)*int64(size)
	willNeed(j.file, at+int64(j.n*size), aheadBytes)
	per := partBytes / size
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
	if scratch == nil {
		scratch = make([]byte, partBytes)
	}
	raw := scratch[:n*j.DType.bits()/8]
	if err := j.readAt(raw, at); err != nil {
		return scratch, err
	}
	j.DType.widen(view(p, j.as, lo+n).Slice(lo, lo+n), raw)
	return scratch, nil
}

// readAt reads from the file. One that became shorter since it was opened is corrupt.
func (j job) readAt(b []byte, at int64) error {
	_, err := j.file.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		return corrupt(j.file.Name(), j.Name, "the file ends before it")
	}
	if err != nil {
		return fileError("read", j.file.Name(), err)
	}
	return nil
}

// hostOrder reports whether this machine has the byte order of the files.
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

// byPlace sorts wants as they lie on the disk.
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
