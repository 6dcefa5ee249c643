//go:build cuda

package cuda

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// TestTensorCore compares tensor cores with MatrixSum of kernels/ref, which defines the class: one step
// of 16 terms on sums of every kind. On a device it takes 10 million steps, on the fake driver fewer.
func TestTensorCore(t *testing.T) {
	b := openIn(t, "matrix/16x25")
	rounds := 10
	if _, fake := os.LookupEnv(fakeVariable); fake {
		rounds = 1
	}
	for _, kind := range stepKinds() {
		t.Run(kind.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			n := 400
			if rounds == 1 {
				n = 60
			}
			for range rounds {
				compareSteps(t, b, newSteps(r, n, kind.factor, kind.sum))
				if t.Failed() {
					return
				}
			}
		})
	}
}

// stepKind is a distribution of factors, of the i-th of 16 terms, and of the sum before a step.
type stepKind struct {
	name   string
	factor func(r *rand.Rand, i int) float32
	sum    func(r *rand.Rand) float32
}

// anyBits returns a number whose bits are random, and exponent and significand so too.
func anyBits(r *rand.Rand) float32 { return math.Float32frombits(r.Uint32()) }

// scaled returns a number between 2^lo and 2^hi, of either sign.
func scaled(r *rand.Rand, lo, hi int) float32 {
	return math.Float32frombits(r.Uint32()&0x807fffff | uint32(127+lo+r.IntN(hi-lo))<<23)
}

func stepKinds() []stepKind {
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, float32(math.Inf(1)), float32(math.Inf(-1)),
		float32(math.NaN()), math.MaxFloat32, 0x1p-126, 0x1p-149}
	one := func(r *rand.Rand) float32 { return special[r.IntN(len(special))] }
	return []stepKind{
		{"normal", func(r *rand.Rand, _ int) float32 { return float32(r.NormFloat64()) },
			func(r *rand.Rand) float32 { return float32(4 * r.NormFloat64()) }},
		{"spread", func(r *rand.Rand, _ int) float32 { return scaled(r, -16, 16) },
			func(r *rand.Rand) float32 { return scaled(r, -30, 30) }},
		// The last places that count, and the first that do not.
		{"cut off", func(r *rand.Rand, i int) float32 { return scaled(r, -12-i%2, -11-i%2) },
			func(r *rand.Rand) float32 { return scaled(r, 0, 3) }},
		{"cancelling", func(r *rand.Rand, i int) float32 { return float32(1-2*(i%2)) * (1 + float32(r.IntN(3))/128) },
			func(r *rand.Rand) float32 { return scaled(r, -26, -20) }},
		{"tiny", func(r *rand.Rand, _ int) float32 { return scaled(r, -76, -60) },
			func(r *rand.Rand) float32 { return scaled(r, -126, -120) / 8 }},
		// Sums that are cut to 0, of either sign.
		{"vanishing", func(r *rand.Rand, i int) float32 { return scaled(r, -80, -74) },
			func(r *rand.Rand) float32 {
				return float32(math.Copysign(0x1p-149*float64(r.IntN(2)), float64(r.IntN(2))-0.5))
			}},
		// Zeros next to large factors, and small products: a zero has no exponent.
		{"zeros", func(r *rand.Rand, i int) float32 {
			if i%4 > 0 {
				return scaled(r, -64, -40)
			}
			return float32(r.IntN(2)) * scaled(r, 0, 64)
		}, func(r *rand.Rand) float32 { return scaled(r, -126, -80) }},
		{"huge", func(r *rand.Rand, _ int) float32 { return scaled(r, 58, 64) },
			func(r *rand.Rand) float32 { return scaled(r, 120, 127) }},
		{"special", func(r *rand.Rand, _ int) float32 { return one(r) }, one},
		{"bits", func(r *rand.Rand, _ int) float32 { return anyBits(r) }, anyBits},
	}
}

// steps are n × n steps: of each of n rows of a with each of n columns of b, on its own sum.
type steps struct {
	n      int
	a, b   []float32 // [n,16]
	before []float32 // [n,n]
}

func newSteps(r *rand.Rand, n int, factor func(r *rand.Rand, i int) float32, sum func(r *rand.Rand) float32) steps {
	s := steps{n, make([]float32, n*kernels.MatrixTerms), make([]float32, n*kernels.MatrixTerms), make([]float32, n*n)}
	for i := range s.a {
		s.a[i], s.b[i] = ref.Round(factor(r, i)), ref.Round(factor(r, 0))
	}
	for i := range s.before {
		s.before[i] = sum(r)
	}
	return s
}

// compareSteps takes the steps on the device, as the gradient of a weight, and reports the first that
// differs from the model.
func compareSteps(t *testing.T, b *Backend, s steps) {
	t.Helper()
	const T = kernels.MatrixTerms
	got := make([]float32, s.n*s.n)
	dw, blocks := upload(t, b, kernels.F32, s.before), upload(t, b, kernels.I32, []int32{0, T})
	a, x := upload(t, b, kernels.F32, transposed(s.a, T)), upload(t, b, kernels.F32, transposed(s.b, T))
	b.MatMulDW(dw, kernels.Buffer{}, a, x, blocks)
	b.Copy(kernels.Host(got), dw)
	b.Sync()
	wrong := 0
	for i, g := range got {
		p, q := s.a[i/s.n*T:][:T], s.b[i%s.n*T:][:T]
		want := ref.MatrixSum(p, q, s.before[i])
		if math.Float32bits(g) == math.Float32bits(want) || g != g && want != want {
			continue
		}
		if wrong++; wrong == 1 {
			t.Errorf("%g (%#08x) plus the products of\n%g\nand\n%g\nis %g (%#08x), want %g (%#08x)", s.before[i],
				math.Float32bits(s.before[i]), p, q, g, math.Float32bits(g), want, math.Float32bits(want))
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d steps differ: these tensor cores do not compute class matrix/16x25", wrong, len(got))
	}
}

// transposed returns x [rows,width] as [width,rows].
func transposed(x []float32, width int) []float32 {
	y, rows := make([]float32, len(x)), len(x)/width
	for i, v := range x {
		y[int(i%width*rows)+i/width] = v
	}
	return y
}

// upload returns x on the device.
func upload[T float32 | int32](t testing.TB, b kernels.Backend, d kernels.DType, x []T) kernels.Buffer {
	t.Helper()
	y, err := b.Alloc(d, len(x))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Free(y) })
	b.Copy(y, kernels.Host(x))
	return y
}
