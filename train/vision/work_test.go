package vision

import (
	"math"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// counting counts the floating-point operations of products and of attention.
type counting struct {
	kernels.Backend
	flops float64
}

func (x *counting) MatMul(out, in kernels.Buffer, w kernels.Matrix, bias kernels.Buffer) {
	x.flops += 2 * float64(out.Len()) * float64(w.In)
	x.Backend.MatMul(out, in, w, bias)
}

func (x *counting) MatMulDX(dx, dout kernels.Buffer, w kernels.Matrix) {
	x.flops += 2 * float64(dout.Len()) * float64(w.In)
	x.Backend.MatMulDX(dx, dout, w)
}

func (x *counting) MatMulDW(dw, dbias, dout, in, blocks kernels.Buffer) {
	x.flops += 2 * float64(dout.Len()) * float64(dw.Len()) / float64(dout.Len()/rowsOf(dw, dout, in))
	x.Backend.MatMulDW(dw, dbias, dout, in, blocks)
}

// rowsOf returns M of dw [Out,In], dout [M,Out] and in [M,In]: M² is the product of the others over dw.
func rowsOf(dw, dout, in kernels.Buffer) int {
	return int(math.Round(math.Sqrt(float64(dout.Len()) * float64(in.Len()) / float64(dw.Len()))))
}

// attended returns the pairs of rows that attend to each other, times channels.
func attended(offsets kernels.Buffer, a kernels.AttentionShape) (n float64) {
	list := kernels.Elems[int32](offsets)
	for i := range len(list) - 1 {
		rows := float64(list[i+1] - list[i])
		n += rows * rows * float64(a.H*a.D)
	}
	return n
}

func (x *counting) Attention(out, stats, qkv, offsets, groups kernels.Buffer, a kernels.AttentionShape) {
	x.flops += 4 * attended(offsets, a)
	x.Backend.Attention(out, stats, qkv, offsets, groups, a)
}

func (x *counting) AttentionBackward(dqkv, dout, out, stats, qkv, offsets, groups kernels.Buffer, a kernels.AttentionShape) {
	x.flops += 10 * attended(offsets, a)
	x.Backend.AttentionBackward(dqkv, dout, out, stats, qkv, offsets, groups, a)
}

// FLOPs and BackwardFLOPs are what passes over an image compute, but for the norms of queries and keys, for which
// InternViT-6B computes their map once more, and for adapters' own products.
func TestFLOPsOfPasses(t *testing.T) {
	for name, c := range smooth() {
		be := &counting{Backend: ref.New[float32]()}
		p := picturedAs(c, 2*c.Merge, 3*c.Merge, 1)
		d := upstream(c, p)
		check := func(what string, want, more float64, pass func()) {
			be.flops = 0
			pass()
			if got := be.flops; !(math.Abs(got-want-more) <= 1e-9*want) {
				t.Errorf("%s, %s: %g operations, not %g", name, what, got, want+more)
			}
		}
		a := learning(t, be, c, rough(c))
		check("features", c.FLOPs(p.Rows, p.Columns), 0, func() { a.tower.Encode(be, p) })
		again := 0.0
		if c.QKNorm {
			again = float64(2*c.Layers) * float64(p.Rows*p.Columns+c.extra(p.Rows)) * float64(3*c.Width*c.Width)
		}
		check("gradients", c.BackwardFLOPs(p.Rows, p.Columns, false), again, func() { a.tower.Backward(be, p, d) })
		b := adapted(t, be, c, rough(c))
		adapters := func(pass func(*Tower)) float64 { // of the passes beyond the frozen tower's
			be.flops = 0
			pass(b.tower)
			return be.flops
		}
		whole := adapters(func(x *Tower) { x.Backward(be, p, d) })
		if want := c.BackwardFLOPs(p.Rows, p.Columns, true) + again; whole < want || whole > 2.5*want {
			t.Errorf("%s: gradients of adapters take %g operations, the weights' share is %g", name, whole, want)
		}
	}
}

// An image near a square has the work of its tokens.
func TestImageFLOPs(t *testing.T) {
	c := tiny(Qwen25VL)
	for tokens, sides := range map[int][2]int{16: {4, 4}, 12: {3, 4}, 1: {1, 1}} {
		forward, backward := c.ImageFLOPs(tokens, false)
		if rows, columns := sides[0]*2, sides[1]*2; forward != c.FLOPs(rows, columns) || backward != c.BackwardFLOPs(rows, columns, false) {
			t.Errorf("%d tokens: %g and %g", tokens, forward, backward)
		}
	}
	if a, _ := c.ImageFLOPs(13, true); a <= c.FLOPs(6, 8) || a >= c.FLOPs(8, 8) {
		t.Errorf("13 tokens: %g", a)
	}
	tiled := tiny(InternVL)
	if f, b := tiled.ImageFLOPs(3, true); f != 3*tiled.FLOPs(2, 2) || b != 3*tiled.BackwardFLOPs(2, 2, true) {
		t.Errorf("three tiles: %g and %g", f, b)
	}
}
