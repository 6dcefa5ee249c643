package optim

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/kernels/ref"
)

func newMuon(t testing.TB, be kernels.Backend, grads kernels.Buffer, momentum float64, list ...Matrix) *Muon {
	t.Helper()
	o, err := NewMuon(be, be, Arena{Grads: grads, Hi: grads.Len(), Matrices: list}, momentum,
		AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, WeightDecay: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o
}

func onCPU(t testing.TB, threads int) kernels.Backend {
	t.Helper()
	be, err := cpu.Open(cpu.Options{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	return be
}

func normals(n int, seed uint64) []float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(float32(r.NormFloat64()))
	}
	return x
}

// slowNewton is the iteration in plain loops.
func slowNewton(u []float64, rows, cols int) []float64 {
	product := func(a, b []float64, m, k, n int) []float64 {
		c := make([]float64, m*n)
		for i := range m {
			for j := range n {
				for l := range k {
					c[i*n+j] += a[i*k+l] * b[l*n+j]
				}
			}
		}
		return c
	}
	norm := 0.0
	for _, x := range u {
		norm += x * x
	}
	x := make([]float64, len(u))
	for i := range x {
		x[i] = u[i] / math.Max(math.Sqrt(norm), newtonEps)
	}
	for range newtonSteps {
		xt := make([]float64, len(x))
		for i := range rows {
			for j := range cols {
				xt[j*rows+i] = x[i*cols+j]
			}
		}
		g := product(x, xt, rows, cols, rows) // always XXᵀ: a·X + b·GX + c·GGX is the same either way
		gx := product(g, x, rows, rows, cols)
		ggx := product(g, gx, rows, rows, cols)
		for i := range x {
			x[i] = newtonA*x[i] + newtonB*gx[i] + newtonC*ggx[i]
		}
	}
	return x
}

func TestNewtonIsSlowNewton(t *testing.T) {
	for _, be := range []kernels.Backend{ref.New[float64](), ref.New[float32](), onCPU(t, 2)} {
		for i, m := range []Matrix{{0, 1, 1}, {0, 1, 7}, {0, 7, 1}, {0, 5, 5}, {0, 17, 70}, {0, 70, 17}, {0, 300, 8}, {0, 8, 300}} {
			u := normals(m.end(), uint64(i))
			n, err := newNewton(be, []Matrix{m})
			if err != nil {
				t.Fatal(err)
			}
			got, want := host(be, n.orthogonal(buffer(t, be, u...), m.Rows, m.Cols)), slowNewton(u, m.Rows, m.Cols)
			for j := range want {
				if math.Abs(got[j]-want[j]) > 2e-4 {
					t.Fatalf("%s: %dx%d: element %d is %v, want %v", be.Name(), m.Rows, m.Cols, j, got[j], want[j])
				}
			}
			n.close()
		}
	}
}

// The rows of a wide matrix become nearly orthonormal: |zᵀO| is |z| times singular values between about 0.7 and 1.2.
func TestNewtonIsOrthogonal(t *testing.T) {
	be := onCPU(t, 1)
	m := Matrix{0, 24, 96}
	n, err := newNewton(be, []Matrix{m})
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	o := host(be, n.orthogonal(buffer(t, be, normals(m.end(), 3)...), m.Rows, m.Cols))
	for try := range 50 {
		z, in, out := normals(m.Rows, uint64(try)), 0.0, 0.0
		for j := range m.Cols {
			y := 0.0
			for i := range m.Rows {
				y += z[i] * o[i*m.Cols+j]
			}
			out += y * y
		}
		for _, x := range z {
			in += x * x
		}
		if r := math.Sqrt(out / in); r < 0.65 || r > 1.25 {
			t.Errorf("a direction is stretched by %v", r)
		}
	}
}

// testdata/muon_torch.json holds three updates by torch.optim.Muon of torch 2.9 or later with lr 0.02, decay 0.1,
// momentum 0.95 and adjust_lr_fn match_rms_adamw, its iteration's bfloat16 replaced by float32.
func TestMuonIsTorchs(t *testing.T) {
	text, err := os.ReadFile("testdata/muon_torch.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Rows, Cols int
		P, Want    []float64
		G          [][]float64
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	be := onCPU(t, 1)
	for _, c := range cases {
		p, g := buffer(t, be, c.P...), buffer(t, be, c.G[0]...)
		o := newMuon(t, be, g, 0.95, Matrix{0, c.Rows, c.Cols})
		for _, x := range c.G {
			be.Copy(g, kernels.Host(x))
			o.Update(p, g, 0.02, 1)
		}
		worst := 0.0
		for i, got := range host(be, p) {
			worst = max(worst, math.Abs(got-c.Want[i]))
		}
		if worst > 2e-6 {
			t.Errorf("%dx%d: differs from torch by %v", c.Rows, c.Cols, worst)
		}
		t.Logf("%dx%d: %.2g", c.Rows, c.Cols, worst)
	}
}

// A 1x1 matrix by hand: X = 1 after the division, then five times x = x·(a + b·x² + c·x⁴); the sides' factor is 0.2.
// The vector behind it takes AdamW's first step, whose size is lr.
func TestMuonByHand(t *testing.T) {
	be := ref.New[float64]()
	p, g := buffer(t, be, 2, 1), buffer(t, be, 4, -3)
	newMuon(t, be, g, 0.5, Matrix{0, 1, 1}).Update(p, g, 0.1, 0.5)
	x := 1.0
	for range 5 {
		x *= 3.4445 - 4.7750*x*x + 2.0315*x*x*x*x
	}
	got := host(be, p)
	if want := 2*0.99 - 0.1*0.2*x; math.Abs(got[0]-want) > 1e-12 {
		t.Errorf("the matrix is %v, want %v", got[0], want)
	}
	if want := 1*0.99 + 0.1; math.Abs(got[1]-want) > 1e-8 {
		t.Errorf("the vector is %v, want %v", got[1], want)
	}
}

// A matrix without a gradient only decays.
func TestMuonOfZero(t *testing.T) {
	be := onCPU(t, 1)
	p, g := buffer(t, be, 1, 2, 3, 4), buffer(t, be, 0, 0, 0, 0)
	newMuon(t, be, g, 0.9, Matrix{0, 2, 2}).Update(p, g, 0.5, 1)
	if got := host(be, p); got[0] != float64(float32(0.95)) || math.IsNaN(got[3]) {
		t.Errorf("got %v, want 0.95 of each", got)
	}
}

// Threads and cuts into shards, even within a matrix, change no bit.
func TestMuonKeepsBits(t *testing.T) {
	list := []Matrix{{3, 40, 30}, {1203, 30, 40}, {2500, 64, 64}}
	const all = 7000
	start := normals(all, 1)
	run := func(threads int, ends ...int) []float64 {
		be := onCPU(t, threads)
		p, g := buffer(t, be, start...), buffer(t, be, start...)
		var shards []*Muon
		lo := 0
		for _, hi := range ends {
			o, err := NewMuon(be, be, Arena{Grads: g, Lo: lo, Hi: hi, Matrices: list}, 0.95,
				AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, WeightDecay: 0.1})
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			shards, lo = append(shards, o), hi
		}
		for step := range 2 {
			be.Copy(g, kernels.Host(normals(all, uint64(step+2))))
			var each func(i int)
			each = func(i int) { // the last shard's Gather runs when all have their part of the gradient
				if i == len(shards) {
					return
				}
				o := shards[i]
				o.arena.Gather = func() { each(i + 1) }
				o.Update(p.Slice(o.arena.Lo, o.arena.Hi), g.Slice(o.arena.Lo, o.arena.Hi), 0.01, 0.7)
			}
			each(0)
		}
		return host(be, p)
	}
	want := run(1, all)
	for _, ends := range [][]int{{4096, all}, {700, 2048, 3000, all}} {
		for threads := 1; threads <= 3; threads += 2 {
			if !slices.Equal(run(threads, ends...), want) {
				t.Errorf("%d threads and shards to %v change bits", threads, ends)
			}
		}
	}
}

// 8·(elements of the largest matrix + square of its lesser side) bytes, its packed copies, and a
// tall matrix's offsets of blocks of rows.
func TestNewtonBytes(t *testing.T) {
	none := func(int, int) (int, int) { return 0, 0 }
	if got := NewtonBytes([]Matrix{{0, 3, 5}, {15, 4, 4}}, none, 4); got != 8*(16+16) {
		t.Errorf("got %d bytes, want %d", got, 8*(16+16))
	}
	whole := func(out, in int) (int, int) { return out * in, out }
	if got := NewtonBytes([]Matrix{{0, 3, 5}, {15, 5, 3}}, whole, 2); got != 8*(15+9)+2*(15+3)+8 {
		t.Errorf("with copies got %d bytes, want %d", got, 8*(15+9)+2*(15+3)+8)
	}
}

func BenchmarkUpdate(b *testing.B) {
	const rows, cols = 896, 896 // of Qwen2.5-0.5B
	be := onCPU(b, 2)
	p, err := be.Alloc(be.Float(), rows*cols)
	if err != nil {
		b.Fatal(err)
	}
	g, _ := be.Alloc(be.Float(), rows*cols)
	a, _ := NewAdamW(be, rows*cols, 0.9, 0.99, 1e-8, 0.1)
	s, _ := NewSGD(be, rows*cols, 0.9, 0.1)
	x := normals(rows*cols, 1)
	for _, o := range []struct {
		name   string
		update func(params, grads kernels.Buffer, lr, scale float64)
	}{{"adamw", a.Update}, {"sgd", s.Update}, {"muon", newMuon(b, be, g, 0.95, Matrix{0, rows, cols}).Update}} {
		b.Run(o.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				be.Copy(g, kernels.Host(x))
				be.Sync()
				b.StartTimer()
				o.update(p, g, 1e-3, 1)
				be.Sync()
			}
		})
	}
}
