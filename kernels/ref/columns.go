package ref

// TakeColumns sets dst [M,n] to scale·src[m, offset+j], src [M,stride]. scale is
// rounded to T first.
func TakeColumns[T Float](dst, src []T, n, stride, offset int, scale float64) {
	for m := range columnRows(dst, src, n, stride, offset) {
		for j := range n {
			dst[m*n+j] = T(scale) * src[m*stride+offset+j]
		}
	}
}

// AddColumns sets dst[m, offset+j] = fma(scale, src[m,j], dst[m, offset+j]), dst
// [M,stride], src [M,n]. scale is rounded to T first.
func AddColumns[T Float](dst, src []T, n, stride, offset int, scale float64) {
	for m := range columnRows(src, dst, n, stride, offset) {
		for j := range n {
			at := m*stride + offset + j
			dst[at] = FMA(T(scale), src[m*n+j], dst[at])
		}
	}
}

// columnRows returns M and panics unless narrow [M,n] is a range of columns of wide
// [M,stride].
func columnRows[T Float](narrow, wide []T, n, stride, offset int) int {
	if n < 1 || offset < 0 || offset+n > stride || len(narrow)%n != 0 || len(narrow)/n*stride != len(wide) {
		panic("ref: columns: length mismatch")
	}
	return len(narrow) / n
}
