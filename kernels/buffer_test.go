package kernels

import "testing"

func TestRows(t *testing.T) {
	x := Host([]float32{0, 1, 2, 3, 4, 5})
	if k := x.PerRow(3); k != 2 {
		t.Errorf("%d elements for each of 3 rows, want 2", k)
	}
	if y := Elems[float32](x.Rows(1, 3, 3)); len(y) != 4 || y[0] != 2 || y[3] != 5 {
		t.Errorf("rows 1 and 2 are %v", y)
	}
	if none := x.Slice(0, 0); none.PerRow(0) != 1 || !none.Rows(0, 0, 0).Empty() {
		t.Error("no rows have elements")
	}
	for n, b := range map[int]Buffer{4: x, 2: x.Slice(0, 0)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d elements make %d rows", b.Len(), n)
				}
			}()
			b.PerRow(n)
		}()
	}
}
