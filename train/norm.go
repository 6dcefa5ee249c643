package train

import (
	"math"
	"unsafe"

	"exp/kernels"
	"exp/train/ranks"
)

// run is consecutive blocks of the norm's sum, from first up to but not including last: whole ones
// of one piece, or one that lies in several.
type run struct {
	first, last int
	parts       []piece
}

// rank returns the rank that sums the run: the one that holds its beginning.
func (r run) rank() int { return r.parts[0].rank }

// runsOf cuts the blocks of a sum over n elements by the ranks that hold them.
func runsOf(owners []piece, n int) (runs []run) {
	for _, p := range owners {
		for at := p.lo; at < p.hi; {
			block := at / kernels.SumBlock
			end := min((block+1)*kernels.SumBlock, n)
			if at == block*kernels.SumBlock && p.hi >= end { // whole ones
				last := p.hi / kernels.SumBlock
				if p.hi == n {
					last = (n + kernels.SumBlock - 1) / kernels.SumBlock
				}
				x, _ := p.within(at, last*kernels.SumBlock)
				runs, at = append(runs, run{block, last, []piece{x}}), x.hi
				continue
			}
			if at == block*kernels.SumBlock {
				runs = append(runs, run{first: block, last: block + 1})
			}
			x, _ := p.within(at, end)
			last := &runs[len(runs)-1]
			last.parts, at = append(last.parts, x), x.hi
		}
	}
	return runs
}

// norm returns the norm of the summed gradient, whose shards the ranks hold: each sums its
// blocks, and adds everybody's sums in order. It is the norm of a rank alone, bit for bit.
func (l *learner) norm() float64 {
	if l.all.Size() == 1 {
		return l.opt.Norm(l.m.Grads())
	}
	lo, hi := l.sum.Shard()
	rank, shard := l.all.Rank(), l.m.Grads().Slice(lo, hi)
	shared := l.sharedBlocks(shard)
	sums := make([]float64, (l.m.Len()+kernels.SumBlock-1)/kernels.SumBlock)
	var mine []float64
	for _, r := range l.runs {
		if r.rank() != rank {
			continue
		}
		x := r.parts[0].slice(shard)
		if len(r.parts) > 1 {
			x = l.block.Slice(0, len(shared[r.first]))
			l.be.Copy(x, kernels.Host(shared[r.first]))
		}
		l.opt.BlockSums(sums[r.first:r.last], x)
		mine = append(mine, sums[r.first:r.last]...)
	}
	lists, err := ranks.Share(l.all, bytesOf(mine))
	ranks.Must(err)
	for _, r := range l.runs {
		if from := r.rank(); from != rank {
			n := copy(bytesOf(sums[r.first:r.last]), lists[from])
			lists[from] = lists[from][n:]
		}
	}
	total := 0.0
	for _, x := range sums {
		total += x
	}
	return math.Sqrt(total)
}

// sharedBlocks returns the blocks that lie in several pieces and that this rank sums, by their
// number. Ranks exchange their parts of such blocks.
func (l *learner) sharedBlocks(shard kernels.Buffer) map[int][]float32 {
	rank, size := l.all.Rank(), l.all.Size()
	blocks, out, in := map[int][]float32{}, make([][]float32, size), make([]int, size)
	for _, r := range l.runs {
		if len(r.parts) == 1 {
			continue
		}
		last := r.parts[len(r.parts)-1]
		if r.rank() == rank {
			blocks[r.first] = make([]float32, last.hi-r.parts[0].lo)
		}
		for _, p := range r.parts {
			switch {
			case p.rank == rank:
				x := make([]float32, p.hi-p.lo)
				l.be.Copy(kernels.Host(x), p.slice(shard))
				l.be.Sync()
				if r.rank() != rank {
					out[r.rank()] = append(out[r.rank()], x...)
					break
				}
				copy(blocks[r.first][p.lo-r.parts[0].lo:], x)
			case r.rank() == rank:
				in[p.rank] += p.hi - p.lo
			}
		}
	}
	got := make([][]float32, size)
	var parts []ranks.Part
	for peer := range size {
		if len(out[peer]) > 0 {
			parts = append(parts, ranks.Part{Data: kernels.Host(out[peer]), Peer: peer, Send: true})
		}
		if in[peer] > 0 {
			got[peer] = make([]float32, in[peer])
			parts = append(parts, ranks.Part{Data: kernels.Host(got[peer]), Peer: peer})
		}
	}
	ranks.Must(l.all.Exchange(parts))
	for _, r := range l.runs {
		for _, p := range r.parts {
			if len(r.parts) > 1 && r.rank() == rank && p.rank != rank {
				n := copy(blocks[r.first][p.lo-r.parts[0].lo:], got[p.rank][:p.hi-p.lo])
				got[p.rank] = got[p.rank][n:]
			}
		}
	}
	return blocks
}

// bytesOf returns the memory of numbers.
func bytesOf(x []float64) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 8*len(x))
}
