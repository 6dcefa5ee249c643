package ref

// MatMul sets out [M,N] = x [M,K] · wᵀ + bias, w [N,K], bias [N] or empty:
//
//	out[m,n] = chain over k of x[m,k]·w[n,k], from bias[n] or from 0
func MatMul[T Float](out, x, w, bias []T, M, N, K int) {
	if len(out) != M*N || len(x) != M*K || len(w) != N*K || (len(bias) != 0 && len(bias) != N) {
		panic("ref: MatMul: length mismatch")
	}
	startAt(out, bias, M, N)
	chains(out, x, w, M, N, K)
}

// startAt sets each row of out [M,N] to bias [N], or to 0 without one.
func startAt[T Float](out, bias []T, M, N int) {
	if len(bias) == 0 {
		clear(out)
		return
	}
	for m := range M {
		copy(out[m*N:(m+1)*N], bias)
	}
}

// MatMulDX sets dx [M,K] = dout [M,N] · w [N,K]:
//
//	dx[m,k] = chain over n of dout[m,n]·w[n,k], from 0
func MatMulDX[T Float](dx, dout, w []T, M, N, K int) {
	if len(dx) != M*K || len(dout) != M*N || len(w) != N*K {
		panic("ref: MatMulDX: length mismatch")
	}
	clear(dx)
	for m := 0; m < M; m++ {
		dxm := dx[m*K : (m+1)*K]
		for n := 0; n < N; n++ {
			accumulate(dxm, dout[m*N+n], w[n*K:(n+1)*K])
		}
	}
}

// MatMulDW adds to dw [N,K], for each block b of rows in order,
//
//	dw[n,k] += chain over m of block b of dout[m,n]·x[m,k], from 0
//	dbias[n] += sum over m of block b of dout[m,n], from 0, unless dbias is empty
//
// with dout [M,N], x [M,K], dbias [N]. blocks are the row offsets of the blocks,
// from 0 to M.
func MatMulDW[T Float](dw, dbias, dout, x []T, blocks []int32, M, N, K int) {
	if len(dw) != N*K || len(dout) != M*N || len(x) != M*K || (len(dbias) != 0 && len(dbias) != N) {
		panic("ref: MatMulDW: length mismatch")
	}
	checkBlocks(blocks, M)
	acc := make([]T, K)
	for b := 1; b < len(blocks); b++ {
		lo, hi := int(blocks[b-1]), int(blocks[b])
		for n := 0; n < N; n++ {
			clear(acc)
			for m := lo; m < hi; m++ {
				accumulate(acc, dout[m*N+n], x[m*K:(m+1)*K])
			}
			addTo(dw[n*K:(n+1)*K], acc)
		}
		if len(dbias) != 0 {
			addColumnSums(dbias, dout[lo*N:hi*N])
		}
	}
}

// addColumnSums adds to dst [N] the plain sum, in row order and from 0, of each
// column of x [rows,N].
func addColumnSums[T Float](dst, x []T) {
	N := len(dst)
	for n := range dst {
		var sum T
		for i := n; i < len(x); i += N {
			sum += x[i]
		}
		dst[n] += sum
	}
}

// addTo adds src to dst, element by element.
func addTo[T Float](dst, src []T) {
	for i, v := range src {
		dst[i] += v
	}
}

// checkBlocks panics unless blocks are ascending row offsets from 0 to M.
func checkBlocks(blocks []int32, M int) {
	if len(blocks) == 0 || blocks[0] != 0 || int(blocks[len(blocks)-1]) != M {
		panic("ref: gradient blocks do not cover the rows")
	}
	for b := 1; b < len(blocks); b++ {
		if blocks[b] < blocks[b-1] {
			panic("ref: gradient blocks are not in order")
		}
	}
}
