package extent

import (
	"fmt"
	"io"
	"os"
)

// scratchBytes bounds the memory of one read of scattered bytes.
const scratchBytes = 256 << 10

// interleave holds steps of equal size; step i is the i-th share of every part.
type interleave struct {
	parts  []Extent
	shares []int64 // bytes of a part in one step
	step   int64   // their sum
}

// Interleave cuts every part into steps equal shares and returns the first shares of all
// parts, then their second shares, and so on: matrices with steps rows, side by side. It
// panics if a part's size is not a multiple of steps.
func Interleave(steps int, parts ...Extent) Extent {
	var x interleave
	var size int64
	for _, p := range parts {
		if p.size == 0 {
			continue
		}
		if steps < 1 || p.size%int64(steps) != 0 {
			panic("extent: a part is not a whole number of shares")
		}
		share := p.size / int64(steps)
		x.parts, x.shares = append(x.parts, p), append(x.shares, share)
		x.step += share
		size += p.size
	}
	if steps == 1 || len(x.parts) < 2 {
		return Concat(x.parts...)
	}
	return Extent{x, size}
}

func (x interleave) read(p []byte, off int64) error {
	if x.step >= scratchBytes {
		return x.oneStep(p, off)
	}
	if head := off % x.step; head > 0 || int64(len(p)) < x.step { // the rest of a step
		n := min(x.step-head, int64(len(p)))
		if err := x.oneStep(p[:n], off); err != nil {
			return err
		}
		p, off = p[n:], off+n
	}
	scratch := make([]byte, min(scratchBytes, int64(len(p))))
	for int64(len(p)) >= x.step {
		steps := min(int64(len(scratch)), int64(len(p))) / x.step
		if err := x.whole(p[:steps*x.step], off/x.step, steps, scratch); err != nil {
			return err
		}
		p, off = p[steps*x.step:], off+steps*x.step
	}
	return x.oneStep(p, off)
}

// whole fills p with whole steps from first on, by one read from each part.
func (x interleave) whole(p []byte, first, steps int64, scratch []byte) error {
	var column int64
	for k, e := range x.parts {
		share := x.shares[k]
		raw := scratch[:steps*share]
		if err := e.node.read(raw, first*share); err != nil {
			return err
		}
		for i := range steps {
			copy(p[i*x.step+column:], raw[i*share:(i+1)*share])
		}
		column += share
	}
	return nil
}

// oneStep fills p with bytes from off, share by share.
func (x interleave) oneStep(p []byte, off int64) error {
	for len(p) > 0 {
		i, at := off/x.step, off%x.step
		for k, e := range x.parts {
			share := x.shares[k]
			if at >= share {
				at -= share
				continue
			}
			n := min(share-at, int64(len(p)))
			if n == 0 {
				break
			}
			if err := e.node.read(p[:n], i*share+at); err != nil {
				return err
			}
			p, off, at = p[n:], off+n, 0
		}
	}
	return nil
}

func (x interleave) visit(off, n int64, f func(file *os.File, at, n int64) bool) bool {
	first, last := off/x.step, (off+n-1)/x.step
	for k, e := range x.parts {
		if !e.node.visit(first*x.shares[k], (last+1-first)*x.shares[k], f) {
			return false
		}
	}
	return true
}

func (x interleave) describe(w io.Writer, number func(*os.File) int) {
	fmt.Fprintf(w, "|%d(", x.step)
	for _, e := range x.parts {
		e.Describe(w, number)
		io.WriteString(w, ",")
	}
	io.WriteString(w, ")")
}
