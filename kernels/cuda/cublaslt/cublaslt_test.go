//go:build cuda

package cublaslt

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/cuda"
)

// openOn opens the fake library on the fake driver, with the workspace that benchmarks have.
func openOn(t *testing.T) (*cuda.Backend, *Library) {
	t.Helper()
	if _, ok := os.LookupEnv("FAKECUDA"); !ok {
		t.Skip("needs the fake driver and the fake cuBLASLt: make cuda")
	}
	for _, dir := range filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")) { // so that the cache of tests knows
		os.ReadFile(filepath.Join(dir, "libcuda.so.1"))
		os.ReadFile(filepath.Join(dir, names()[0]))
	}
	be, err := cuda.Open(0, "matrix/16x25")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	workspace := alloc(t, be, kernels.BF16, 1<<20)
	l, err := Open("", be, workspace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return be, l
}

func alloc(t *testing.T, be *cuda.Backend, d kernels.DType, n int) kernels.Buffer {
	t.Helper()
	x, err := be.Alloc(d, n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { be.Free(x) })
	return x
}

// A library that is missing or lacks a function has an error that says which, and what to do.
func TestLibraryError(t *testing.T) {
	for path, want := range map[string]string{
		"/none/libcublasLt.so.13": "no cuBLASLt: /none/libcublasLt.so.13: cannot open shared object file",
		"libc.so.6":               "no cuBLASLt: libc.so.6 has no cublasLtGetVersion; install NVIDIA's libcublas",
	} {
		_, err := Open(path, nil, kernels.Buffer{})
		if e := (*LibraryError)(nil); !errors.As(err, &e) || !strings.HasPrefix(err.Error(), want) ||
			!strings.HasSuffix(err.Error(), "set EXP_CUBLASLT to the library's path") {
			t.Errorf("Open(%q) = %v, want %q", path, err, want)
		}
	}
}

// With no path Open loads the newest library.
func TestOpen(t *testing.T) {
	_, l := openOn(t)
	if got, want := l.String(), "libcublasLt.so.13: cuBLASLt 13.1.5"; got != want {
		t.Errorf("opened %s, want %s", got, want)
	}
}

// The library's products are the backend's but for the order of sums: of a linear map and its gradients,
// with rows of the weights that are further apart than their length.
func TestProducts(t *testing.T) {
	be, l := openOn(t)
	for _, s := range []struct{ M, N, K int }{{1, 1, 1}, {5, 24, 13}, {70, 33, 40}, {16, 130, 72}} {
		t.Run(fmt.Sprintf("%d,%d,%d", s.M, s.N, s.K), func(t *testing.T) { compareProducts(t, be, l, s.M, s.N, s.K) })
	}
}

func compareProducts(t *testing.T, be *cuda.Backend, l *Library, M, N, K int) {
	r := rand.New(rand.NewPCG(7, 8))
	random := func(d kernels.DType, n int) kernels.Buffer {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		x := alloc(t, be, d, n)
		be.Copy(x, kernels.Host(v))
		return x
	}
	packed, _ := be.PackedLen(N, K)
	w := kernels.Matrix{W: random(kernels.F32, N*K), Packed: alloc(t, be, kernels.BF16, packed), Out: N, In: K}
	be.Pack(w)
	x, dout, grad := random(kernels.BF16, M*K), random(kernels.BF16, M*N), random(kernels.F32, N*K)
	blocks := alloc(t, be, kernels.I32, 2)
	be.Copy(blocks, kernels.Host([]int32{0, int32(M)}))
	X, Y, W := Matrix{x, M, K, K, false}, Matrix{dout, M, N, N, false}, Matrix{w.Packed, N, K, packed / N, false}
	wT, yT := W, Y
	wT.Transposed, yT.Transposed = true, true
	for _, op := range []struct {
		name       string
		rows, cols int
		out        kernels.DType
		a, b       Matrix
		add        bool
		ours       func(out kernels.Buffer)
	}{
		{"MatMul", M, N, kernels.BF16, X, wT, false, func(out kernels.Buffer) { be.MatMul(out, x, w, kernels.Buffer{}) }},
		{"MatMul to f32", M, N, kernels.F32, X, wT, false, func(out kernels.Buffer) { be.MatMul(out, x, w, kernels.Buffer{}) }},
		{"MatMulDX", M, K, kernels.BF16, Y, W, false, func(out kernels.Buffer) { be.MatMulDX(out, dout, w) }},
		{"MatMulDW", N, K, kernels.F32, yT, X, true,
			func(out kernels.Buffer) { be.MatMulDW(out, kernels.Buffer{}, dout, x, blocks) }},
	} {
		n := op.rows * op.cols
		want, got := alloc(t, be, op.out, n), alloc(t, be, op.out, n)
		if op.add { // to the same numbers
			be.Copy(want, grad)
			be.Copy(got, grad)
		}
		op.ours(want)
		p, err := l.Product(Matrix{got, op.rows, op.cols, op.cols, false}, op.a, op.b, op.add)
		if err != nil {
			t.Fatalf("%s: %v", op.name, err)
		}
		if err := p.Run(); err != nil {
			t.Errorf("%s: %v", op.name, err)
		}
		near(t, be, op.name, got, want)
		p.Close()
	}
}

// near compares products of up to 130 terms of about 1. Sums of float32 in two orders differ by far less
// than 1e-3, and those rounded to bf16 by one in its last place, 2^-7 of the number.
func near(t *testing.T, be *cuda.Backend, name string, got, want kernels.Buffer) {
	t.Helper()
	g, w := make([]float32, got.Len()), make([]float32, got.Len())
	be.Copy(kernels.Host(g), got)
	be.Copy(kernels.Host(w), want)
	be.Sync()
	relative := 0.0
	if got.DType() == kernels.BF16 {
		relative = 0x1p-7
	}
	for i := range g {
		if d := math.Abs(float64(g[i]) - float64(w[i])); !(d <= 1e-3+relative*math.Abs(float64(w[i]))) {
			t.Fatalf("%s: element %d is %g, ours %g", name, i, g[i], w[i])
		}
	}
}

// A call that fails is an error with the name of the function and of the status.
func TestErrors(t *testing.T) {
	be, l := openOn(t)
	x, out := alloc(t, be, kernels.BF16, 64), alloc(t, be, kernels.F32, 64)
	m, to := Matrix{x, 8, 8, 8, false}, Matrix{out, 8, 8, 8, false}
	for told, want := range map[string]string{
		"MatmulDescCreate:1":             "cublasLtMatmulDescCreate: CUBLAS_STATUS_NOT_INITIALIZED (status 1)",
		"MatmulDescSetAttribute:7":       "cublasLtMatmulDescSetAttribute: CUBLAS_STATUS_INVALID_VALUE (status 7)",
		"MatrixLayoutCreate:7":           "cublasLtMatrixLayoutCreate: CUBLAS_STATUS_INVALID_VALUE (status 7)",
		"MatmulPreferenceCreate:1":       "cublasLtMatmulPreferenceCreate: CUBLAS_STATUS_NOT_INITIALIZED (status 1)",
		"MatmulPreferenceSetAttribute:7": "cublasLtMatmulPreferenceSetAttribute: CUBLAS_STATUS_INVALID_VALUE (status 7)",
		"MatmulAlgoGetHeuristic:15":      "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_NOT_SUPPORTED (status 15)",
		"none":                           "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_NOT_SUPPORTED (status 15)",
	} {
		t.Setenv("FAKECUBLASLT", told)
		if _, err := l.Product(to, m, m, false); err == nil || err.Error() != want {
			t.Errorf("%s: Product = %v, want %s", told, err, want)
		}
	}
	t.Setenv("FAKECUBLASLT", "Create:1")
	if _, err := Open("", be, x); err == nil || err.Error() != "cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED (status 1)" {
		t.Errorf("Open = %v", err)
	}
	t.Setenv("FAKECUBLASLT", "")
	p, err := l.Product(to, m, m, false)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	t.Setenv("FAKECUBLASLT", "Matmul:13")
	e := (*Error)(nil)
	if err := p.Run(); !errors.As(err, &e) || *e != (Error{"cublasLtMatmul", 13, "CUBLAS_STATUS_EXECUTION_FAILED"}) {
		t.Errorf("Run = %v", err)
	}
}

// Arrays that are no product, and what is no array in device memory, are mistakes of the caller.
func TestPanics(t *testing.T) {
	be, l := openOn(t)
	x, out := alloc(t, be, kernels.BF16, 48), alloc(t, be, kernels.F32, 48)
	for name, tt := range map[string]struct{ out, a, b Matrix }{
		"terms":       {Matrix{out, 6, 6, 6, false}, Matrix{x, 6, 8, 8, false}, Matrix{x, 6, 8, 8, false}},
		"result":      {Matrix{out, 6, 8, 8, false}, Matrix{x, 6, 8, 8, false}, Matrix{x, 6, 8, 8, true}},
		"too short":   {Matrix{out, 7, 7, 7, false}, Matrix{x, 7, 6, 6, false}, Matrix{x, 6, 7, 7, false}},
		"pitch":       {Matrix{out, 6, 6, 5, false}, Matrix{x, 6, 8, 8, false}, Matrix{x, 6, 8, 8, true}},
		"factor type": {Matrix{out, 6, 6, 6, false}, Matrix{out, 6, 8, 8, false}, Matrix{x, 6, 8, 8, true}},
		"host":        {Matrix{kernels.Host(make([]float32, 36)), 6, 6, 6, false}, Matrix{x, 6, 8, 8, false}, Matrix{x, 6, 8, 8, true}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p, _ := recover().(string); !strings.HasPrefix(p, "cublaslt: ") {
					t.Errorf("panic %q", p)
				}
			}()
			l.Product(tt.out, tt.a, tt.b, false)
		})
	}
}
