package ref_test

import (
	"os"
	"testing"

	"exp/kernels"
	"exp/kernels/kerneltest"
	"exp/kernels/ref"
)

// The reference against itself, for the laws that need no reference, and its float64 instance
// against the float32 one, within the tolerances: an error that both share would be in the
// formula, and finite differences look at that. As it has no blocks, large shapes show nothing new:
// EXP_TEST_ALL=1 takes them, too.
func TestBackend(t *testing.T) {
	suite := kerneltest.NewSuite()
	suite.Small = os.Getenv("EXP_TEST_ALL") == ""
	t.Run("float32", func(t *testing.T) { suite.Test(t, open) })
	t.Run("float64", func(t *testing.T) {
		if testing.Short() {
			t.Skip("float32 runs the same cases")
		}
		suite.Test(t, func() kernels.Backend { return ref.New[float64]() })
	})
}

func TestBackendIs(t *testing.T) {
	tests := []struct {
		b     kernels.Backend
		class string
		float kernels.DType
	}{
		{ref.New[float32](), "cpu/fma", kernels.F32},
		{ref.New[float64](), "ref/f64", kernels.F64},
	}
	for _, tt := range tests {
		if tt.b.Name() != "ref" || tt.b.Class() != tt.class || tt.b.Float() != tt.float {
			t.Errorf("got %s, %s, %v; want ref, %s, %v", tt.b.Name(), tt.b.Class(), tt.b.Float(), tt.class, tt.float)
		}
	}
}

func TestBackendConverts(t *testing.T) {
	b := ref.New[float32]()
	x, err := b.Alloc(kernels.F32, 3)
	if err != nil {
		t.Fatal(err)
	}
	// 1+2⁻²⁴ lies between 1 and 1+2⁻²³ and goes to the even 1.
	b.Copy(x, kernels.Host([]float64{0.5, 1 + 0x1p-24, 1e-60}))
	got := make([]float64, 3)
	b.Copy(kernels.Host(got), x)
	for i, want := range []float64{0.5, 1, 0} {
		if got[i] != want {
			t.Errorf("element %d = %v, want %v", i, got[i], want)
		}
	}
}

func TestBackendPanics(t *testing.T) {
	b := ref.New[float32]()
	f, _ := b.Alloc(kernels.F32, 4)
	d, _ := b.Alloc(kernels.F64, 4)
	i, _ := b.Alloc(kernels.I32, 4)
	w := kernels.Matrix{W: f, Out: 2, In: 2}
	tests := []struct {
		message string
		call    func()
	}{
		{"ref: negative length", func() { b.Alloc(kernels.F32, -1) }},
		{"ref: Free of memory that Alloc did not give", func() { b.Free(f.Slice(1, 2)) }},
		{"ref: Copy: length mismatch", func() { b.Copy(f, d.Slice(0, 3)) }},
		{"ref: Copy: no conversion between these types", func() { b.Copy(f, i) }},
		{"ref: Add: length mismatch", func() { b.Add(f, f.Slice(0, 3)) }},
		{"ref: buffer is not of the backend's float type", func() { b.Add(f, d) }},
		{"ref: buffer is not of the backend's float type", func() { b.GELU(f, i) }},
		{"ref: buffer is not of type i32", func() { b.Embed(f, kernels.Matrix{W: f, Out: f.Len(), In: 1}, f, 1) }},
		{"ref: not a whole number of rows", func() { b.MatMul(f.Slice(0, 3), f, w, kernels.Buffer{}) }},
		{"ref: MatMul: length mismatch", func() { b.MatMul(f, f.Slice(0, 2), w, kernels.Buffer{}) }},
		{"ref: MatMulDW: no block boundaries", func() { b.MatMulDW(f, f, f, f, kernels.Buffer{}) }},
		{"ref: SumSquares: length mismatch", func() { b.SumSquares(d, f) }},
		{"ref: matrix: length mismatch", func() {
			b.LogProb(kernels.Scores{}, f, kernels.Matrix{W: f, Out: 3, In: 2}, i, kernels.Softmax{Temperature: 1})
		}},
	}
	for _, tt := range tests {
		func() {
			defer func() {
				if got := recover(); got != tt.message {
					t.Errorf("panic %v, want %q", got, tt.message)
				}
			}()
			tt.call()
		}()
	}
}
