package kerneltest

import (
	"fmt"
	"slices"

	"exp/kernels"
)

// pageSizes are multiples of the lanes, one of them no power of two.
func pageSizes() []int { return []int{16, 32, 48, 64} }

// cache places the sequences of a batch in pages, in random order.
type cache struct {
	packed
	size  int       // positions in a page
	pages int       // two more than are used
	width int       // pages in a row of the table; one more than the longest needs
	table []int32   // [sequences,width]; entries past a sequence's end are garbage
	seq   []int32   // [M] sequence of a row
	pos   []int32   // [M] position of a row
	slots []int32   // [M] where AppendKV puts a row
	qkv   []float32 // [M,Stride]
	again bool      // the batch is in pages of another size, too
}

func newCache(p packed, size int) *cache {
	p.groups = nil // a sequence in pages is whole
	k := &cache{packed: p, size: size, pages: 2, qkv: p.qkv()}
	for _, n := range p.lengths {
		need := (n + size - 1) / size
		k.pages += need
		k.width = max(k.width, need+1)
	}
	free := newStream(fmt.Sprint("pages", p, size)).permutation(k.pages)
	for j, n := range p.lengths {
		row := make([]int32, k.width)
		for i := range row {
			row[i] = bandInt
		}
		for t := range n {
			if t%size == 0 {
				row[t/size] = int32(free[0])
				free = free[1:]
			}
			k.seq = append(k.seq, int32(j))
			k.pos = append(k.pos, int32(t))
			k.slots = append(k.slots, row[t/size]*int32(size)+int32(t%size))
		}
		k.table = append(k.table, row...)
	}
	return k
}

// elements returns the length of the cache's keys, and of its values.
func (k *cache) elements() int { return k.pages * k.shape.K * k.shape.D * k.size }

func (k *cache) String() string { return fmt.Sprintf("%v, pages of %d", k.packed, k.size) }

// cachesOf returns the batches in pages of several sizes.
func cachesOf(batches []packed, short bool) []*cache {
	var list []*cache
	for i, p := range batches {
		for j, size := range pageSizes() {
			// All sizes for the small ones, unless short.
			if i < 4 && !short || i%len(pageSizes()) == j {
				k := newCache(p, size)
				k.again = i%len(pageSizes()) != j
				list = append(list, k)
			}
		}
	}
	return list
}

// allCaches are all batches in pages.
func allCaches(short bool) []*cache {
	return append(cachesOf(plainBatches(short), short), cachesOf(windowBatches(short), short)...)
}

// filled returns what the pages hold after the reference appended all rows; positions that
// no row has are NaN.
func (s *subject) filled(k *cache) (keys, values []float32, err error) {
	r, err := s.reference(func(c *call) {
		p := kernels.Pages{Keys: c.outOperands("keys", k.elements()), Values: c.outOperands("values", k.elements()),
			Size: k.size}
		c.b.AppendKV(p, c.operands("qkv", k.qkv), c.ints("slots", k.slots), k.shape)
	})
	if err != nil {
		return nil, nil, err
	}
	return slices.Clone(r[0].f), slices.Clone(r[1].f), nil
}

func checkAppendKV(s *subject) error {
	for _, k := range cachesOf(plainBatches(s.short), s.short) {
		r := newStream("append" + k.String())
		keys, values := r.floats(k.elements()), r.floats(k.elements())
		err := s.compare("AppendKV", func(c *call) {
			p := kernels.Pages{Keys: c.inoutOperands("keys", keys), Values: c.inoutOperands("values", values),
				Size: k.size}
			c.b.AppendKV(p, c.operands("qkv", k.qkv), c.ints("slots", k.slots), k.shape)
		})
		if err != nil {
			return fmt.Errorf("%v: %w", k, err)
		}
	}
	return nil
}

func checkCopyPages(s *subject) error {
	for _, k := range cachesOf(plainBatches(s.short), s.short) {
		r := newStream("copy pages" + k.String())
		keys, values := r.floats(k.elements()), r.floats(k.elements())
		// A chain: 0 → 1, then 1 → the last, in this order.
		list := []int32{0, 1, 1, int32(k.pages - 1)}
		err := s.compare("CopyPages", func(c *call) {
			p := kernels.Pages{Keys: c.inoutOperands("keys", keys), Values: c.inoutOperands("values", values),
				Size: k.size}
			c.b.CopyPages(p, c.ints("pairs", list), k.shape)
		})
		if err != nil {
			return fmt.Errorf("%v: %w", k, err)
		}
	}
	return nil
}

// checkPagedAttentionRows decodes rows of all sequences in one batch.
func checkPagedAttentionRows(s *subject) error { return s.checkPagedRows(allCaches(s.short)) }

func (s *subject) checkPagedRows(list []*cache) error {
	for _, k := range list {
		a := k.shape
		rows := []field{{name: "qkv", width: a.Stride(), f: k.qkv, operand: true}, {name: "seq", width: 1, i: k.seq},
			{name: "pos", width: 1, i: k.pos}}
		if !a.Ahead.Empty() {
			rows = append(rows, field{name: "ahead", width: 1, i: kernels.Elems[int32](a.Ahead)})
		}
		keys, values, err := s.filled(k)
		if err != nil {
			return err
		}
		err = s.checkRows(rowCase{
			name: fmt.Sprintf("PagedAttention %v", k), op: "PagedAttention", large: k.again,
			rows: rows,
			run: func(c *call, in []kernels.Buffer, M int) {
				p := kernels.Pages{Keys: c.operands("keys", keys), Values: c.operands("values", values), Size: k.size}
				a := a
				if len(in) > 3 {
					a.Ahead = in[3]
				}
				c.b.PagedAttention(c.outOperands("out", M*a.H*a.D), c.out("stats", M*a.H*2), in[0], p,
					c.ints("table", k.table), in[1], in[2], k.width, a)
			},
		}, k.rows())
		if err != nil {
			return err
		}
	}
	return nil
}

// checkPagedAttentionWindow decodes the last row of every sequence. Before its window, the
// table's entries are garbage and the positions NaN.
func checkPagedAttentionWindow(s *subject) error {
	for _, k := range cachesOf(windowBatches(s.short), s.short) {
		a := k.shape
		if a.Window == 0 {
			continue
		}
		keys, values, err := s.filled(k)
		if err != nil {
			return err
		}
		table := slices.Clone(k.table)
		var seq, pos []int32
		var qkv []float32
		for m, at := range k.pos {
			j, from := int(k.seq[m]), k.lengths[k.seq[m]]-a.Window
			if int(at) < from {
				k.clear(keys, values, int(k.slots[m]))
			}
			if int(at) == k.lengths[j]-1 {
				seq, pos, qkv = append(seq, k.seq[m]), append(pos, at),
					append(qkv, k.qkv[m*a.Stride():(m+1)*a.Stride()]...)
				for i := range max(from, 0) / k.size {
					table[j*k.width+i] = bandInt
				}
			}
		}
		err = s.compare("PagedAttention", func(c *call) {
			p := kernels.Pages{Keys: c.operands("keys", keys), Values: c.operands("values", values), Size: k.size}
			c.b.PagedAttention(c.outOperands("out", len(seq)*a.H*a.D), kernels.Buffer{}, c.operands("qkv", qkv), p,
				c.ints("table", table), c.ints("seq", seq), c.ints("pos", pos), k.width, a)
		})
		if err != nil {
			return fmt.Errorf("%v: %w", k, err)
		}
	}
	return nil
}

// clear makes the key and the value in a slot NaN.
func (k *cache) clear(keys, values []float32, slot int) {
	page, at, a := slot/k.size, slot%k.size, k.shape
	for h := range a.K {
		for d := range a.D {
			keys[((page*a.K+h)*a.D+d)*k.size+at] = bandNaN()
			values[((page*a.K+h)*k.size+at)*a.D+d] = bandNaN()
		}
	}
}

// checkPrefill checks that Attention over whole sequences, chunks of rows that
// are appended and attended one after another, and single steps give the same
// bits, their stats included.
func checkPrefill(s *subject) error {
	for _, k := range allCaches(s.short) {
		whole, err := run(s.b, func(c *call) { k.attend(c, k.qkv) })
		if err != nil {
			return err
		}
		M := k.rows()
		for _, chunk := range []int{1, 7, 16, M} {
			got, err := run(s.b, func(c *call) { k.decode(c, chunk) })
			if err != nil {
				return err
			}
			if err := same(got, whole[:2], exactly); err != nil {
				return fmt.Errorf("%v in chunks of %d is not Attention: %w", k, chunk, err)
			}
		}
	}
	return nil
}

// decode appends and attends to chunk rows at a time.
func (k *cache) decode(c *call, chunk int) {
	cuts := []int{0}
	for lo := 0; lo < k.rows(); lo += chunk {
		cuts = append(cuts, min(lo+chunk, k.rows()))
	}
	k.decodeParts(c, cuts)
}

// decodeParts appends and attends to rows from one cut up to the next at a time. Pages start as NaN, so that
// positions not yet written show if they are read.
func (k *cache) decodeParts(c *call, cuts []int) {
	a, M := k.shapeOn(c), k.rows()
	ahead := a.Ahead
	out, stats := c.outOperands("out", M*a.H*a.D), c.out("stats", M*a.H*2)
	p := kernels.Pages{Keys: c.spareOperands("keys", nans(k.elements())), Values: c.spareOperands("values",
		nans(k.elements())), Size: k.size}
	qkv, slots := c.operands("qkv", k.qkv), c.ints("slots", k.slots)
	table, seq, pos := c.ints("table", k.table), c.ints("seq", k.seq), c.ints("pos", k.pos)
	for i, hi := range cuts[1:] {
		lo := cuts[i]
		if !ahead.Empty() {
			a.Ahead = ahead.Slice(lo, hi)
		}
		rows := qkv.Slice(lo*a.Stride(), hi*a.Stride())
		c.b.AppendKV(p, rows, slots.Slice(lo, hi), a)
		c.b.PagedAttention(out.Slice(lo*a.H*a.D, hi*a.H*a.D), stats.Slice(lo*a.H*2, hi*a.H*2), rows, p, table,
			seq.Slice(lo, hi), pos.Slice(lo, hi), k.width, a)
	}
}
