package kerneltest

import (
	"fmt"

	"exp/kernels"
)

func columnChecks() []check {
	return []check{{"TakeColumns", checkTakeColumns}, {"AddColumns", checkAddColumns}}
}

// columnRange is n columns from offset on of rows of stride.
type columnRange struct{ n, stride, offset int }

// columnRanges are whole rows, ranges at their beginning, middle and end.
func columnRanges() []columnRange {
	var list []columnRange
	for _, n := range sizes() {
		list = append(list, columnRange{n, n, 0}, columnRange{n, n + 20, 3})
	}
	return append(list, columnRange{16, 48, 32}, columnRange{300, 310, 0}, columnRange{64, 192, 128})
}

// columnRows is the number of rows that ranges of columns are taken of.
const columnRows = 9

// eachColumnRange calls f with every range, a scale, and every combination of whether the
// source and the destination are operands.
func eachColumnRange(f func(g columnRange, scale float64, from, to bool) error) error {
	for i, g := range columnRanges() {
		for types := range 4 {
			if err := f(g, []float64{1, 0.3, -2}[i%3], types%2 == 1, types/2 == 1); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkTakeColumns(s *subject) error {
	return eachColumnRange(func(g columnRange, scale float64, from, to bool) error {
		src := newStream(fmt.Sprint("take columns", g)).floats(columnRows * g.stride)
		return s.checkRows(rowCase{
			name: fmt.Sprintf("TakeColumns %+v scale %v, operands %v to %v", g, scale, from, to), op: "TakeColumns",
			rows: []field{{name: "src", width: g.stride, f: src, operand: from}},
			run: func(c *call, in []kernels.Buffer, M int) {
				out := c.out
				if to {
					out = c.outOperands
				}
				c.b.TakeColumns(out("dst", M*g.n), in[0], g.n, g.stride, g.offset, scale)
			},
		}, columnRows)
	})
}

func checkAddColumns(s *subject) error {
	return eachColumnRange(func(g columnRange, scale float64, from, to bool) error {
		r := newStream(fmt.Sprint("add columns", g))
		dst, src := r.floats(columnRows*g.stride), r.floats(columnRows*g.n)
		return s.checkRows(rowCase{
			name: fmt.Sprintf("AddColumns %+v scale %v, operands %v to %v", g, scale, from, to), op: "AddColumns",
			rows: []field{{name: "src", width: g.n, f: src, operand: from}, {name: "dst", width: g.stride, f: dst,
				operand: to, inout: true}},
			run: func(c *call, in []kernels.Buffer, M int) {
				c.b.AddColumns(in[1], in[0], g.n, g.stride, g.offset, scale)
			},
		}, columnRows)
	})
}
