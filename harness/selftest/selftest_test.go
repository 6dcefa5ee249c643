package selftest

import (
	"context"
	"errors"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/kernels/ref"
	"exp/train"
)

func openCPU(t *testing.T, level cpu.Level, threads int, operand kernels.DType) *cpu.Backend {
	t.Helper()
	return openAs(t, cpu.Options{Level: &level, Threads: threads, Operand: operand})
}

func openAs(t *testing.T, o cpu.Options) *cpu.Backend {
	t.Helper()
	be, err := cpu.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	return be
}

// Plain loops, every level and every number of threads give the digest that is
// written down.
func TestTrain(t *testing.T) {
	backends := []kernels.Backend{ref.New[float32](), ref.NewMixed(), ref.NewMatrix()}
	for l := cpu.Portable; l <= cpu.AMX; l++ {
		if l.Supported() {
			backends = append(backends, openCPU(t, l, 1, kernels.F32), openCPU(t, l, 3, kernels.F32),
				openCPU(t, l, 2, kernels.BF16))
		}
		if l.Supported() && l <= cpu.AVX512 {
			backends = append(backends, openAs(t, cpu.Options{Level: &l, Threads: 2, Matrix: true}))
		}
	}
	for _, be := range backends {
		want, known := Want(Numerics(be))
		if !known {
			t.Skipf("no digest is known for %s", Numerics(be))
		}
		got, err := Train(context.Background(), be)
		if err != nil || got != want {
			t.Errorf("%s: digest %s, %v; want %s", be.Name(), got, err, want)
		}
	}
}

// faulty is a backend that is wrong in one unit of the last place.
type faulty struct {
	kernels.Backend
	adamw, sample bool
}

func bend(b kernels.Buffer) {
	x := kernels.Elems[float32](b)
	x[0] += x[0] * 1e-6
}

func (f faulty) AdamW(p, m, v, g kernels.Buffer, a kernels.AdamW) {
	f.Backend.AdamW(p, m, v, g, a)
	if f.adamw {
		bend(p)
	}
}

func (f faulty) MatMul(out, x kernels.Buffer, w kernels.Matrix, bias kernels.Buffer) {
	f.Backend.MatMul(out, x, w, bias)
	if f.sample && out.Len() == w.Out { // one row, as only the sampler has them
		bend(out)
	}
}

// The test can fail: one wrong bit in an update changes the digest, one in the
// sampler is a mismatch.
func TestTrainFinds(t *testing.T) {
	be := openCPU(t, cpu.BestLevel(), 1, kernels.F32)
	want, _ := Want(Numerics(be))
	if got, err := Train(context.Background(), faulty{Backend: be, adamw: true}); err != nil || got == want {
		t.Errorf("a faulty optimizer: digest %s, %v", got, err)
	}
	_, err := Train(context.Background(), faulty{Backend: be, sample: true})
	var m *train.MismatchError
	if !errors.As(err, &m) {
		t.Errorf("a faulty sampler: %v, want a MismatchError", err)
	}
}
