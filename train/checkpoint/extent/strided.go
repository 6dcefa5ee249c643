package extent

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
)

// Loop is one level of Strided: N repetitions, Stride bytes apart.
type Loop struct{ N, Stride int64 }

// strided holds runs of bytes of another node.
type strided struct {
	of    node
	at    int64
	run   int64 // bytes
	loops []Loop
}

// longRun is the length of runs that are read one by one, straight to their place.
const longRun = 4 << 10

// Strided returns runs of run bytes of e, at
//
//	at + i[0]·loops[0].Stride + i[1]·loops[1].Stride + …
//
// for all indexes i[k] below loops[k].N, the last one fastest: rows of groups, columns of a
// matrix, or a matrix transposed. Strides may be 0, to repeat bytes, but not negative. It
// panics if e is too short.
func Strided(e Extent, at, run int64, loops ...Loop) Extent {
	size, last := run, at+run
	var kept []Loop
	for _, l := range loops {
		if l.N < 0 || l.Stride < 0 {
			panic("extent: negative stride")
		}
		size *= l.N
		last += (l.N - 1) * l.Stride
		if l.N == 1 {
			continue
		}
		if n := len(kept); n > 0 && kept[n-1].Stride == l.N*l.Stride {
			kept[n-1] = Loop{kept[n-1].N * l.N, l.Stride}
		} else {
			kept = append(kept, l)
		}
	}
	if size == 0 {
		return Extent{}
	}
	if at < 0 || run < 0 || last > e.size {
		panic("extent: strides out of range")
	}
	if n := len(kept); n > 0 && kept[n-1].Stride == run {
		run *= kept[n-1].N
		kept = kept[:n-1]
	}
	if len(kept) == 0 {
		return e.Slice(at, run)
	}
	return Extent{strided{e.node, at, run, kept}, size}
}

// place returns the offset of run i in the node below.
func (x strided) place(i int64) int64 {
	at := x.at
	for k := len(x.loops) - 1; k >= 0; k-- {
		l := x.loops[k]
		at += i % l.N * l.Stride
		i /= l.N
	}
	return at
}

func (x strided) read(p []byte, off int64) error {
	for len(p) > 0 {
		i, within := off/x.run, off%x.run
		n := min(x.run-within, int64(len(p)))
		if whole := int64(len(p)) / x.run; x.run < longRun && within == 0 && whole > 1 {
			n = whole * x.run
			if err := x.boxes(p[:n], x.at, x.loops, i, i+whole); err != nil {
				return err
			}
		} else if err := x.of.read(p[:n], x.place(i)+within); err != nil {
			return err
		}
		p, off = p[n:], off+n
	}
	return nil
}

// boxes fills p with runs [lo, hi) of a nest of loops that begins at at. It cuts them into
// boxes: ranges of one loop with everything inside it.
func (x strided) boxes(p []byte, at int64, loops []Loop, lo, hi int64) error {
	if len(loops) == 0 {
		return x.of.read(p, at)
	}
	inner := int64(1)
	for _, l := range loops[1:] {
		inner *= l.N
	}
	if first := lo / inner; lo%inner != 0 || hi-lo < inner {
		end := min(hi, (first+1)*inner)
		n := (end - lo) * x.run
		err := x.boxes(p[:n], at+first*loops[0].Stride, loops[1:], lo-first*inner, end-first*inner)
		if err != nil || end == hi {
			return err
		}
		p, lo = p[n:], end
	}
	if whole := (hi - lo) / inner; whole > 0 {
		n := whole * inner * x.run
		nest := append([]Loop{{whole, loops[0].Stride}}, loops[1:]...)
		if err := x.box(p[:n], at+lo/inner*loops[0].Stride, nest); err != nil {
			return err
		}
		p, lo = p[n:], lo+whole*inner
	}
	if lo == hi {
		return nil
	}
	return x.boxes(p, at+lo/inner*loops[0].Stride, loops[1:], 0, hi-lo)
}

// axis is a loop with its step in the output.
type axis struct {
	Loop
	out int64
}

// waste bounds how many times more bytes than needed one read may fetch.
const waste = 8

// box fills p with a whole nest of loops, in the order of the bytes below.
func (x strided) box(p []byte, at int64, loops []Loop) error {
	axes := make([]axis, len(loops))
	step := x.run
	for k := len(loops) - 1; k >= 0; k-- {
		axes[k] = axis{loops[k], step}
		step *= loops[k].N
	}
	slices.SortStableFunc(axes, func(a, b axis) int { return -cmp.Compare(a.Stride, b.Stride) })
	last := &axes[len(axes)-1]
	whole, most := last.N, last.N
	if last.Stride > 0 && last.Stride <= waste*x.run { // dense: cut it to what one read takes
		most = (scratchBytes-x.run)/last.Stride + 1
	}
	for i := int64(0); i < whole; i += most {
		last.N = min(most, whole-i)
		if err := x.windows(p[i*last.out:], at+i*last.Stride, axes); err != nil {
			return err
		}
	}
	return nil
}

// windows makes one read of the axes with the smallest strides, where that does not fetch
// much in vain, for every index of the others.
func (x strided) windows(p []byte, at int64, axes []axis) error {
	span, used, k := x.run, x.run, len(axes)
	for ; k > 0; k-- {
		a := axes[k-1]
		wide := span + (a.N-1)*a.Stride
		if a.Stride > 0 {
			used *= a.N
		}
		if wide > scratchBytes || wide > longRun && wide > waste*used {
			break
		}
		span = wide
	}
	return x.scan(p, at, axes[:k], axes[k:], make([]byte, span))
}

// scan reads one window for every index of the outer axes and spreads it over p.
func (x strided) scan(p []byte, at int64, outer, inner []axis, window []byte) error {
	if len(outer) == 0 {
		if err := x.of.read(window, at); err != nil {
			return err
		}
		spread(p, window, inner, x.run)
		return nil
	}
	for i := range outer[0].N {
		err := x.scan(p[i*outer[0].out:], at+i*outer[0].Stride, outer[1:], inner, window)
		if err != nil {
			return err
		}
	}
	return nil
}

func spread(p, window []byte, axes []axis, run int64) {
	if len(axes) == 0 {
		copy(p, window[:run])
		return
	}
	for i := range axes[0].N {
		spread(p[i*axes[0].out:], window[i*axes[0].Stride:], axes[1:], run)
	}
}

// visit names long runs one by one, and for short ones everything that the outermost loop
// passes on the way.
func (x strided) visit(off, n int64, f func(file *os.File, at, n int64) bool) bool {
	first, last := off/x.run, (off+n-1)/x.run
	if x.run >= longRun {
		for i := first; i <= last; i++ {
			if !x.of.visit(x.place(i), x.run, f) {
				return false
			}
		}
		return true
	}
	inner, span := int64(1), x.run
	for _, l := range x.loops[1:] {
		inner *= l.N
		span += (l.N - 1) * l.Stride
	}
	begin := x.at + first/inner*x.loops[0].Stride
	return x.of.visit(begin, (last/inner-first/inner)*x.loops[0].Stride+span, f)
}

func (x strided) describe(w io.Writer, number func(*os.File) int) {
	fmt.Fprintf(w, "*%d/%d%v(", x.at, x.run, x.loops)
	x.of.describe(w, number)
	io.WriteString(w, ")")
}
