package generate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/train/model"
	"exp/train/rollout"
)

// dirty is a backend whose new memory holds NaN: what a step reads without having
// written it shows.
type dirty struct{ kernels.Backend }

func (d dirty) Alloc(t kernels.DType, n int) (kernels.Buffer, error) {
	b, err := d.Backend.Alloc(t, n)
	switch {
	case err != nil:
	case t == kernels.F32:
		for i, x := 0, kernels.Elems[float32](b); i < len(x); i++ {
			x[i] = float32(math.NaN())
		}
	case t == kernels.BF16:
		for i, x := 0, kernels.Bits(b); i < len(x); i++ {
			x[i] = 0x7fc0
		}
	}
	return b, err
}

// bits renders a completion; floats as their bits.
func bits(c rollout.Completion) string {
	s := fmt.Sprint(c.Tokens, c.Text, c.Finish)
	for i := range c.LogProbs {
		s += fmt.Sprintf(" %x/%x", math.Float32bits(c.LogProbs[i]), math.Float32bits(c.Entropies[i]))
	}
	return s
}

// TestAnyAdmission: a completion has the same bits at every level and number of
// threads, in whatever order its request and its siblings come, alone or as one of
// sixteen, whether its prompt is computed in one piece, token by token or with
// others, whatever the sizes of pages and table, and whatever lies in unused memory.
func TestAnyAdmission(t *testing.T) {
	for _, operand := range []kernels.DType{kernels.F32, kernels.BF16} {
		t.Run(operand.String(), func(t *testing.T) { checkAdmission(t, operand, toy) })
		t.Run(operand.String()+" linear", func(t *testing.T) { checkAdmission(t, operand, linearToy()) })
	}
}

func checkAdmission(t *testing.T, operand kernels.DType, c model.Config) {
	const n = 16
	p := rollout.Params{Temperature: 0.9, TopP: 1, MaxNewTokens: 20}
	one := openAs(t, cpu.Options{Threads: 1, Operand: operand})
	reqs := requests(rand.New(rand.NewPCG(12, 1)), 5, n, 60)
	want := map[uint64]string{} // by seed
	for i, list := range sample(t, newEngine(t, one, newModel(t, one, c), Options{MaxSequences: 1, PageTokens: 16, MaxTokens: 96, StepRows: 200}), reqs, p) {
		for k, c := range list {
			want[reqs[i].Seeds[k]] = bits(c)
		}
	}
	for run, threads := range []int{1, 2, 3, 8, 1, 2} {
		r := rand.New(rand.NewPCG(uint64(run), 13))
		level := cpu.Level(r.IntN(int(cpu.BestLevel()) + 1))
		be := openAs(t, cpu.Options{Level: &level, Threads: threads, Operand: operand})
		o := Options{MaxSequences: 1 + r.IntN(40), PageTokens: 16 * (1 + r.IntN(6)), MaxTokens: 80 + r.IntN(17)}
		// A step with full slots has room for one prompt token, some, or all.
		o.StepRows = o.MaxSequences + []int{1, 1 + r.IntN(30), 400}[run%3]
		var some []rollout.Request
		for _, i := range r.Perm(len(reqs)) {
			q := rollout.Request{Prompt: reqs[i].Prompt}
			for _, k := range r.Perm(n)[:[]int{1, 1 + r.IntN(n), n}[r.IntN(3)]] {
				q.Seeds = append(q.Seeds, reqs[i].Seeds[k])
			}
			some = append(some, q)
		}
		e, err := New(dirty{be}, newModel(t, be, c), letters{}, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		for i, list := range sample(t, e, some, p) {
			for k, c := range list {
				if got := bits(c); got != want[some[i].Seeds[k]] {
					t.Fatalf("run %d, level %s, %d threads, %+v: request %d with %d seeds, sample %d:\n%s\nwant\n%s",
						run, level, threads, o, i, len(some[i].Seeds), k, got, want[some[i].Seeds[k]])
				}
			}
		}
	}
}
