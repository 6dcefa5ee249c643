package kerneltest

import (
	"fmt"
	"math"

	"exp/kernels"
)

func memoryChecks() []check {
	return []check{
		{"Alloc", checkAlloc},
		{"Copy", checkCopy},
		{"Zero", checkZero},
		{"Add", checkAdd},
		{"Empty", checkEmpty},
	}
}

// checkAlloc asks for zeroed memory, also where it was used before.
func checkAlloc(s *subject) error {
	for _, t := range []kernels.DType{s.b.Float(), s.b.Operand(), kernels.F64, kernels.I32} {
		for _, n := range []int{0, 1, 17, 4097} {
			for range 2 { // the second time may get the first one's memory
				x, err := s.b.Alloc(t, n)
				if err != nil {
					return fmt.Errorf("alloc %v [%d]: %w", t, n, err)
				}
				if x.Len() != n || x.DType() != t || x.IsHost() {
					return fmt.Errorf("alloc %v [%d] gave %v [%d], host %v", t, n, x.DType(), x.Len(), x.IsHost())
				}
				if i := firstNonZero(s.b, x); i >= 0 {
					return fmt.Errorf("alloc %v [%d]: element %d is not zero", t, n, i)
				}
				fill(s.b, x)
				s.b.Free(x)
			}
		}
	}
	return nil
}

// firstNonZero returns the index of an element whose bits are not all zero, or
// -1.
func firstNonZero(b kernels.Backend, x kernels.Buffer) int {
	v := imageFor(x)
	b.Copy(v.host(), x)
	b.Sync()
	for i := range x.Len() {
		if v.bits(i) != 0 {
			return i
		}
	}
	return -1
}

// fill sets every element of x to something that is not zero.
func fill(b kernels.Backend, x kernels.Buffer) {
	v := imageFor(x)
	for i := range v.f {
		v.f[i] = 1
	}
	for i := range v.d {
		v.d[i] = 1
	}
	for i := range v.i {
		v.i[i] = 1
	}
	b.Copy(x, v.host())
	b.Sync()
}

func imageFor(x kernels.Buffer) image {
	switch x.DType() {
	case kernels.I32:
		return image{i: make([]int32, x.Len())}
	case kernels.F64:
		return image{d: make([]float64, x.Len())}
	}
	return image{f: make([]float32, x.Len())}
}

// checkCopy copies from host to device, within the device, between float types
// and back.
func checkCopy(s *subject) error {
	for _, n := range append(sizes(), 5000) {
		r := newStream(fmt.Sprint("copy", n))
		x := r.floats(n)
		x[n/2] = float32(math.Inf(-1))
		ids := r.ids(n, math.MaxInt32)
		err := s.compare("Copy", func(c *call) {
			from := c.floats("src", x)
			c.b.Copy(c.out("dst", n), from)
			c.b.Copy(c.outOperands("dst operands", n), from)
			c.b.Copy(c.out("dst of operands", n), c.operands("src operands", x))
			wide := c.outDoubles("dst f64", n)
			c.b.Copy(wide, from)
			c.b.Copy(c.out("dst of f64", n), wide)
			c.b.Copy(c.outInts("dst i32", n), c.ints("src i32", ids))
		})
		if err != nil {
			return fmt.Errorf("%d elements: %w", n, err)
		}
		if err := s.checkHostCopy(x, ids); err != nil {
			return fmt.Errorf("%d elements: %w", n, err)
		}
	}
	return nil
}

// checkHostCopy takes a host view to the device and back into another.
func (s *subject) checkHostCopy(x []float32, ids []int32) error {
	n := len(x)
	var back image
	_, err := run(s.b, func(c *call) {
		back = image{f: nans(n + 2)}
		dev := c.spare("x", nans(n))
		c.b.Copy(dev, kernels.Host(x))
		c.b.Copy(kernels.Host(back.f).Slice(1, n+1), dev)
		c.b.Sync()
	})
	if err != nil {
		return err
	}
	want := banded(x, 1, 1, bandNaN())
	if s.b.Float() != kernels.F32 && s.b.Float() != kernels.F64 {
		return nil // a narrower type rounds
	}
	return result{"host copy", image{f: want}}.matches(back, exactly)
}

func checkZero(s *subject) error {
	for _, n := range append(sizes(), 40_000) {
		err := s.compare("Copy", func(c *call) {
			c.b.Zero(c.out("floats", n))
			c.b.Zero(c.outInts("ints", n))
			c.b.Zero(c.outDoubles("doubles", n))
		})
		if err != nil {
			return fmt.Errorf("%d elements: %w", n, err)
		}
	}
	return nil
}

func checkAdd(s *subject) error {
	for _, M := range append(sizes(), 5000) {
		r := newStream(fmt.Sprint("add", M))
		err := s.checkRows(rowCase{
			name: "Add", op: "Add",
			rows: []field{{name: "dst", width: 1, f: r.floats(M), inout: true},
				{name: "src", width: 1, f: r.floats(M)}},
			run: func(c *call, in []kernels.Buffer, M int) { c.b.Add(in[0], in[1]) },
		}, M)
		if err != nil {
			return err
		}
	}
	return nil
}
