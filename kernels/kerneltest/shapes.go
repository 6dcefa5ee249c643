package kerneltest

// sizes are the lengths at which fast code changes its path: 1, 2, odd and prime
// ones, and one less, equal and one more than the tiles 6, 8, 14, 16 and 32 that
// kernels block by.
func sizes() []int {
	return []int{1, 2, 3, 5, 6, 7, 8, 9, 13, 14, 15, 16, 17, 31, 32, 33, 61}
}

// tileEdges are the sizes around tiles alone, for tables of pairs.
func tileEdges() []int { return []int{1, 5, 6, 7, 8, 13, 14, 15, 16, 17, 31, 32, 33} }

// gemmShape is a linear map of M rows from K inputs to N outputs.
type gemmShape struct{ M, N, K int }

// gemmShapes takes every size for every dim, every pair of tile edges for the
// dims that register tiles span, and large shapes past the blocks that caches
// suggest: K of several hundreds, N and M of a thousand, GEMV.
func gemmShapes(short bool) []gemmShape {
	var list []gemmShape
	for _, n := range sizes() {
		list = append(list, gemmShape{n, 19, 13}, gemmShape{5, n, 13}, gemmShape{5, 19, n})
	}
	for _, m := range tileEdges() {
		for _, n := range tileEdges() {
			list = append(list, gemmShape{m, n, 4})
		}
	}
	list = append(list, gemmShape{1, 1030, 40}, gemmShape{7, 40, 1100}, gemmShape{300, 17, 9})
	if short {
		return list
	}
	return append(list, gemmShape{131, 97, 520}, gemmShape{1, 4100, 70}, gemmShape{1030, 33, 20},
		gemmShape{64, 128, 256})
}
