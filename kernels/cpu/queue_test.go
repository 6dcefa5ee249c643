package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"exp/kernels"
)

// arena is memory in which calls use views that overlap anyhow.
type arena struct {
	b        *Backend
	all      kernels.Buffer
	weights  []kernels.Matrix
	ones     kernels.Buffer
	cos      kernels.Buffer // [positions,·]
	pos      kernels.Buffer // [M]
	anywhere kernels.Buffer // [M] below fewRows
	choice   kernels.Buffer // [M,3]
	slots    kernels.Buffer // [M] below fewRows
}

const (
	arenaSize = 40_000
	positions = 9
	fewRows   = 40
)

func newArena(t *testing.T, threads, m int) *arena {
	b := openAs(t, Options{Threads: threads})
	a := &arena{b: b, all: b.room(t, kernels.F32, arenaSize), ones: b.room(t, kernels.F32, 48), cos: b.waves(t, kernels.F32, positions*4),
		pos: b.room(t, kernels.I32, m), anywhere: b.room(t, kernels.I32, m),
		choice: b.room(t, kernels.I32, 3*m), slots: b.room(t, kernels.I32, m)}
	for _, s := range [][2]int{{16, 16}, {33, 16}, {64, 24}, {32, 48}} {
		a.weights = append(a.weights, b.packedMatrix(t, s[0], s[1]))
	}
	for i, v := 0, kernels.Elems[float32](a.ones); i < len(v); i++ {
		v[i] = 1
	}
	return a
}

// after returns what the arena holds after so many calls that a seed decides, most of them
// of m rows.
func (a *arena) after(seed uint64, calls, m int) []uint32 {
	r, b := rand.New(rand.NewPCG(seed, 0)), a.b
	for i, v := 0, kernels.Elems[float32](a.all); i < len(v); i++ {
		v[i] = r.Float32() - 0.5
	}
	for i := range m {
		kernels.Elems[int32](a.pos)[i] = int32(r.IntN(positions))
		kernels.Elems[int32](a.anywhere)[i] = int32(r.IntN(fewRows))
		kernels.Elems[int32](a.slots)[i] = int32(r.IntN(fewRows))
	}
	// view is any view of n elements that has none of the others': many begin at the same few
	// places.
	view := func(n int, others ...kernels.Buffer) kernels.Buffer {
		for {
			at := r.IntN(arenaSize - n + 1)
			if r.IntN(3) > 0 {
				at = at / 4096 * 4096
			}
			v := a.all.Slice(at, at+n)
			if !slices.ContainsFunc(others, func(o kernels.Buffer) bool { return overlap(v, o) }) {
				return v
			}
		}
	}
	for range calls {
		M := m
		if r.IntN(12) == 0 {
			M = fewRows + r.IntN(m-fewRows)
		}
		w, C := a.weights[r.IntN(len(a.weights))], 16*(1+r.IntN(3))
		ones, x, row := a.ones.Slice(0, C), view(M*w.In), view(M*C)
		switch r.IntN(15) {
		case 0, 1, 2:
			b.MatMul(view(M*w.Out, x), x, w, kernels.Buffer{})
		case 3:
			w, x = a.weights[0], view(M*16)
			act := view(M*8, x)
			b.MatMulSwiGLU(act, view(M*16, x, act), x, w)
		case 4:
			b.RMSNorm(row, view(M, row), row, ones, kernels.NormShape{Heads: 1, Dim: C, Stride: C}, 1e-6)
		case 5:
			delta := view(M*16, row.Slice(0, M*16))
			row = row.Slice(0, M*16)
			out := view(M*16, row, delta)
			b.AddRMSNorm(row, out, view(M, row, delta, out), row, delta, a.ones.Slice(0, 16), kernels.NormShape{Heads: 1, Dim: 16, Stride: 16}, 1e-6)
		case 6:
			b.Rope(row, a.cos, a.cos, a.pos.Slice(0, M), kernels.AttentionShape{H: C/8 - 2, K: 1, D: 8}, false)
		case 7:
			b.GatherRows(view(M*C, row), row, a.anywhere.Slice(0, M), C)
		case 8:
			b.Add(x, view(x.Len(), x))
		case 9:
			b.Gate(view(M*C/2, row), row, C/2, kernels.GateKind(r.IntN(2)))
		case 10:
			b.GateBackward(row, row, view(M*C/2, row), C/2, kernels.GateKind(r.IntN(2)))
		case 11:
			b.AddColumns(row, view(M*8, row), 8, C, 8*r.IntN(C/8), 0.5)
		case 12:
			b.TakeColumns(view(M*8, row), row, 8, C, 8*r.IntN(C/8), 0.5)
		case 13:
			probs := view(M*(C-1), row)
			b.Route(a.choice.Slice(0, 3*M), view(3*M, row, probs), probs, row, kernels.Buffer{},
				kernels.Routing{Experts: C - 1, Top: 2, Shared: true})
		case 14:
			out := view(M*C, row)
			b.Combine(out, row, a.slots.Slice(0, M), view(M, out), C, 1)
		}
	}
	b.Sync()
	return bitsOf(a.all)
}

func overlap(a, b kernels.Buffer) bool {
	x, y := use{b: a}.span(), use{b: b}.span()
	return x.lo < y.hi && y.lo < x.hi
}

// Calls that are queued give what they give one after the other, however the memory that they
// use overlaps.
func TestQueueKeepsOrder(t *testing.T) {
	for _, threads := range []int{2, 3} {
		m := 4*14*threads + 5
		one, many := newArena(t, 1, m), newArena(t, threads, m)
		if !many.b.queue.takes(m, 0) || one.b.queue.takes(m, 0) {
			t.Fatalf("%d rows are not queued by %d threads, or by one", m, threads)
		}
		for range 150 {
			seed := rand.Uint64()
			for _, calls := range []int{3, 40} {
				if at := slices.Compare(many.after(seed, calls, m), one.after(seed, calls, m)); at != 0 {
					t.Fatalf("seed %d: %d calls of %d rows by %d threads differ", seed, calls, m, threads)
				}
			}
		}
	}
}

// decoder is what a sampler runs, layer by layer, on rows whose keys and values go to pages.
type decoder struct {
	b                      *Backend
	layers                 []kernels.Pages
	qkvW, oW, upW, downW   kernels.Matrix
	ones, cos              kernels.Buffer
	shape                  kernels.AttentionShape
	windows                []int // of layer after layer, over and over
	width                  int   // of the page table
	x, n, qkv, att, act, d kernels.Buffer
	rstd                   kernels.Buffer
	seq, pos, slots, table kernels.Buffer
	embedding, tokens      kernels.Buffer
}

const (
	decoderC = 32
	pageSize = 16
)

func newDecoder(t *testing.T, o Options, rows, sequences, pages int) *decoder {
	b := openAs(t, o)
	h, f := b.Operand(), kernels.F32
	s := kernels.AttentionShape{H: 4, K: 2, D: 16, Scale: 0.25}
	d := &decoder{b: b, shape: s, windows: []int{0}, width: 6, ones: b.waves(t, f, decoderC), cos: b.waves(t, f, 6*pageSize*8),
		qkvW: b.packedMatrix(t, s.Stride(), decoderC), oW: b.packedMatrix(t, decoderC, 64), upW: b.packedMatrix(t, 96, decoderC), downW: b.packedMatrix(t, decoderC, 48),
		x: b.room(t, f, rows*decoderC), n: b.room(t, h, rows*decoderC), d: b.room(t, f, rows*decoderC), rstd: b.room(t, f, rows),
		qkv: b.room(t, h, rows*s.Stride()), att: b.room(t, h, rows*64), act: b.room(t, h, rows*48),
		seq: b.room(t, kernels.I32, rows), pos: b.room(t, kernels.I32, rows), slots: b.room(t, kernels.I32, rows), tokens: b.room(t, kernels.I32, rows),
		table: b.room(t, kernels.I32, 6*sequences), embedding: b.waves(t, f, 50*decoderC)}
	for range 20 { // more calls than a queue holds
		d.layers = append(d.layers, kernels.Pages{Keys: b.room(t, h, pages*pageSize*32), Values: b.room(t, h, pages*pageSize*32), Size: pageSize})
	}
	d.layers = append(d.layers, d.layers[19]) // what one layer reads the next overwrites
	return d
}

// step computes rows.
func (d *decoder) step(tokens, seq, pos, slots, table []int32) {
	b, s, m := d.b, d.shape, len(tokens)
	load := func(buf kernels.Buffer, v []int32) kernels.Buffer {
		b.Copy(buf.Slice(0, len(v)), kernels.Host(v))
		return buf.Slice(0, len(v))
	}
	rows := func(buf kernels.Buffer, width int) kernels.Buffer { return buf.Slice(0, m*width) }
	sq, ps, sl, tb := load(d.seq, seq), load(d.pos, pos), load(d.slots, slots), load(d.table, table)
	x, n, qkv, att, delta, rstd := rows(d.x, decoderC), rows(d.n, decoderC), rows(d.qkv, s.Stride()), rows(d.att, 64), rows(d.d, decoderC), rows(d.rstd, 1)
	b.Embed(x, kernels.Matrix{W: d.embedding, Out: d.embedding.Len() / decoderC, In: decoderC}, load(d.tokens, tokens), 1)
	b.RMSNorm(n, rstd, x, d.ones, kernels.NormShape{Heads: 1, Dim: decoderC, Stride: decoderC}, 1e-6)
	for i, p := range d.layers {
		s.Window = d.windows[i%len(d.windows)]
		b.MatMul(qkv, n, d.qkvW, kernels.Buffer{})
		b.Rope(qkv, d.cos, d.cos, ps, s, false)
		b.AppendKV(p, qkv, sl, s)
		b.PagedAttention(att, kernels.Buffer{}, qkv, p, tb, sq, ps, d.width, s)
		b.MatMul(delta, att, d.oW, kernels.Buffer{})
		b.AddRMSNorm(x, n, rstd, x, delta, d.ones, kernels.NormShape{Heads: 1, Dim: decoderC, Stride: decoderC}, 1e-6)
		b.MatMulSwiGLU(rows(d.act, 48), kernels.Buffer{}, n, d.upW)
		b.MatMul(delta, rows(d.act, 48), d.downW, kernels.Buffer{})
		b.AddRMSNorm(x, n, rstd, x, delta, d.ones, kernels.NormShape{Heads: 1, Dim: decoderC, Stride: decoderC}, 1e-6)
	}
	b.Sync()
}

// Sampling steps give the same bits queued and not: decode steps, in which a row needs the keys
// that it brings itself, and those with rows of prompts, which need each other's, in one
// order or another.
func TestQueuedSamplingSteps(t *testing.T) {
	for _, operand := range []kernels.DType{kernels.F32, kernels.BF16} {
		for i, threads := range []int{2, 3, 8, 2} {
			seed := rand.Uint64()
			r := rand.New(rand.NewPCG(seed, 0))
			windows := [][]int{{0}, {20, 0}, {1, 0, 33}, {20}}[i]
			strip := 14
			if operand == kernels.BF16 {
				strip = tileBlock
			}
			sequences := 4*threads*strip + r.IntN(40)
			most := sequences + 200
			pages := 2 * sequences // one for each, and the prompts'
			one := newDecoder(t, Options{Threads: 1, Operand: operand}, most, sequences, pages)
			many := newDecoder(t, Options{Threads: threads, Operand: operand}, most, sequences, pages)
			one.windows, many.windows = windows, windows
			table, free := slices.Repeat([]int32{-1}, 6*sequences), r.Perm(pages)
			length := make([]int, sequences)
			for step := range 8 {
				var tokens, seq, pos, slots []int32
				before := slices.Clone(length)
				row := func(s int) {
					at := length[s]
					if at%pageSize == 0 {
						table[6*s+at/pageSize], free = int32(free[0]), free[1:]
					}
					tokens, seq, pos = append(tokens, int32(r.IntN(50))), append(seq, int32(s)), append(pos, int32(at))
					slots = append(slots, table[6*s+at/pageSize]*pageSize+int32(at%pageSize))
					length[s]++
				}
				for s := range sequences {
					row(s)
				}
				for prompts := r.IntN(6) * (step % 2); prompts > 0; prompts-- {
					s := r.IntN(sequences)
					for n := r.IntN(min(30, 6*pageSize-length[s]-11)); n > 0; n-- {
						row(s)
					}
				}
				if step%4 == 3 { // rows need what later ones bring
					r.Shuffle(len(tokens), func(i, j int) {
						for _, v := range [][]int32{tokens, seq, pos, slots} {
							v[i], v[j] = v[j], v[i]
						}
					})
				}
				if len(windows) == 1 && windows[0] > 0 { // pages that no window reaches are given back
					for s := range sequences {
						for p := range max(0, before[s]+1-windows[0]) / pageSize {
							table[6*s+p] = -1
						}
					}
				}
				one.step(tokens, seq, pos, slots, table)
				many.step(tokens, seq, pos, slots, table)
				for i, list := range [][2]kernels.Buffer{{one.x, many.x}, {one.layers[19].Keys, many.layers[19].Keys}, {one.layers[19].Values, many.layers[19].Values}} {
					if !slices.Equal(bitsOf(list[0]), bitsOf(list[1])) {
						t.Fatalf("seed %d, %v, %d threads, windows %v, step %d of %d rows: %s differ", seed, operand, threads, windows, step, len(tokens), []string{"rows", "keys", "values"}[i])
					}
				}
			}
		}
	}
}

// Rows wait for the blocks whose keys they see: of a decoding sequence for none, of a prompt
// for earlier ones, and where a later row brings a key for all.
func TestWhatAttentionWaitsFor(t *testing.T) {
	const m, size, width = 224, 16, 3 // 16 strips: blocks of 56 rows, then of 14
	b := open(t, BestLevel(), 2)
	b.startQueue(m)
	q := b.queue
	see := unsafe.Slice((*int32)(unsafe.Pointer(q.c.see)), q.blocks)
	first := make([]int, q.blocks+1)
	for i := range first {
		first[i] = q.row(i)
	}
	block := func(row int) int32 {
		for i := range see {
			if row < first[i+1] {
				return int32(i)
			}
		}
		panic("no such row")
	}
	// Sequence s has pages 3s, 3s+1 and 3s+2; rows are of sequences of their own, at position 20.
	table, seq, pos, slots := make([]int32, m*width), make([]int32, m), make([]int32, m), make([]int32, m)
	slot := func(row int) { slots[row] = table[int(seq[row])*width+int(pos[row])/size]*size + pos[row]%size }
	for i := range m {
		for j := range width {
			table[i*width+j] = int32(i*width + j)
		}
		seq[i], pos[i] = int32(i), 20
		slot(i)
	}
	windowed := func(n int) queueWait {
		q.asked = []question{{size: size, width: width, window: n}}
		return q.sees(0, slots, table, seq, pos, nil, m*width)
	}
	ask := func() queueWait { return windowed(math.MaxInt32) }
	if got := ask(); got != afterNone {
		t.Errorf("rows of different sequences: %d", got)
	}
	prompt := func(lo, n, at int) {
		for i := range n {
			seq[lo+i], pos[lo+i] = int32(lo), int32(at+i)
			slot(lo + i)
		}
	}
	// The last block of a prompt, from position 26 on, sees the page that row 186 begins.
	prompt(170, 40, 0)
	if got := windowed(5); got != afterEarlier || see[block(209)] != block(186) {
		t.Errorf("a prompt with a window of 5: %d, block %d sees blocks from %d on, want %d", got, block(209), see[block(209)], block(186))
	}
	if got := ask(); got != afterEarlier || see[block(209)] != block(170) {
		t.Errorf("a prompt: %d, block %d sees blocks from %d on, want %d", got, block(209), see[block(209)], block(170))
	}
	for i := 170; i < 210; i++ {
		seq[i], pos[i] = int32(i), 20
		slot(i)
	}
	prompt(50, 40, 0)
	if got := ask(); got != afterEarlier {
		t.Fatalf("a prompt: %d", got)
	}
	for i := range see {
		want := int32(i)
		if at := block(50); int32(i) > at && first[i] < 90 {
			want = at
		}
		if see[i] != want {
			t.Errorf("block %d, rows from %d on, sees blocks from %d on, want %d", i, first[i], see[i], want)
		}
	}
	table[200*width] = table[50*width] // which shares a page of the prompt
	if got := ask(); got != afterEarlier || see[block(200)] != block(50) {
		t.Errorf("a page of an earlier prompt: %d, from block %d on", got, see[block(200)])
	}
	table[20*width] = table[50*width] // as does a row before it
	if got := ask(); got != afterAll {
		t.Errorf("a page that later rows fill: %d", got)
	}
	table[20*width] = 20 * width
	pos[60], pos[61] = pos[61], pos[60]
	slot(60)
	slot(61)
	if got := ask(); got != afterAll {
		t.Errorf("a prompt out of order: %d", got)
	}
	for i, s := range q.stores {
		if s != (pageStores{}) {
			t.Fatalf("page %d is left as %v", i, s)
		}
	}
}

// Queued work runs before the host looks, before its memory is freed, and before scratch
// memory grows.
func TestQueueRunsInTime(t *testing.T) {
	const M, K = 150, 64
	b := open(t, BestLevel(), 2)
	w := b.packedMatrix(t, K, K)
	x, want := b.waves(t, kernels.F32, M*K), b.room(t, kernels.F32, M*K)
	for r := range M {
		b.MatMul(want.Slice(r*K, (r+1)*K), x.Slice(r*K, (r+1)*K), w, kernels.Buffer{})
	}
	for name, after := range map[string]func(out kernels.Buffer){
		"Sync":  func(kernels.Buffer) { b.Sync() },
		"Copy":  func(kernels.Buffer) { b.Copy(b.room(t, kernels.F32, 1), kernels.Host([]float32{1})) },
		"Free":  func(kernels.Buffer) { b.Free(b.mustAlloc(1)) },
		"Zero":  func(kernels.Buffer) { b.Zero(b.room(t, kernels.F32, 1)) },
		"write": func(kernels.Buffer) { b.Add(x, b.waves(t, kernels.F32, M*K)); b.Sync() },
		"few rows": func(out kernels.Buffer) {
			b.MatMul(b.room(t, kernels.F32, K), out.Slice(0, K), w, kernels.Buffer{})
		},
		"scratch": func(kernels.Buffer) {
			big := b.packedMatrix(t, 16, 1000)
			b.MatMul(b.room(t, kernels.F32, M*16), b.waves(t, kernels.F32, M*1000), big, kernels.Buffer{})
			b.Sync()
		},
	} {
		x0 := bitsOf(x)
		out := b.room(t, kernels.F32, M*K)
		b.MatMul(out, x, w, kernels.Buffer{})
		if bitsOf(out)[0] != 0 {
			t.Fatal("a product was not queued")
		}
		after(out)
		if !slices.Equal(bitsOf(out), bitsOf(want)) {
			t.Errorf("%s: not what was called before", name)
		}
		for i, bits := range x0 { // as before
			kernels.Elems[float32](x)[i] = math.Float32frombits(bits)
		}
	}

}
