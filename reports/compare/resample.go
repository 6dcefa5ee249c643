package compare

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"exp/eval/stat"
)

// blockDraws bounds the memory of draws: their counts of clusters are held for one
// block at a time.
const blockDraws = 256

// draws are resamples of clusters and of runs.
type draws struct {
	times   [][]float64   // [draws][clusters] how often each was drawn
	weights [][][]float64 // [draws][arms][rows] how often each was drawn
}

// resample returns the means of arms under n draws, [panels][arms][n]. Every draw
// takes clusters with replacement, once for all arms, and rows of an arm with
// replacement, and serves all panels: the statistic is that of
// stat.BootstrapDifference, for which a test compares both, at a fraction of the
// cost. A mean is NaN if no problem with a value was drawn.
func (t *table) resample(n int) [][][]float64 {
	means := make([][][]float64, len(t.panels))
	for i := range means {
		means[i] = make([][]float64, len(t.order))
		for a := range means[i] {
			means[i][a] = make([]float64, n)
		}
	}
	rng := rand.New(rand.NewPCG(t.seed, 0))
	d := t.newDraws(min(n, blockDraws))
	for from := 0; from < n; from += blockDraws {
		size := min(blockDraws, n-from)
		for i := range size {
			t.draw(rng, d, i)
		}
		t.meansOf(d, size, from, means)
	}
	return means
}

func (t *table) newDraws(n int) *draws {
	d := &draws{times: make([][]float64, n), weights: make([][][]float64, n)}
	for i := range n {
		d.times[i] = make([]float64, t.clusters)
		for a := range t.order {
			d.weights[i] = append(d.weights[i], make([]float64, len(t.panels[0].sums[a])))
		}
	}
	return d
}

// draw makes draw i.
func (t *table) draw(rng *rand.Rand, d *draws, i int) {
	times := d.times[i]
	clear(times)
	for range times {
		times[rng.IntN(len(times))]++
	}
	for _, a := range t.order {
		w := d.weights[i][a]
		clear(w)
		if len(w) == 1 {
			w[0] = 1
			continue
		}
		for range w {
			w[rng.IntN(len(w))]++
		}
	}
}

// meansOf computes a block of draws, panels side by side.
func (t *table) meansOf(d *draws, size, from int, means [][][]float64) {
	var wg sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), len(t.panels))
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(t.panels); i += workers {
				p := &t.panels[i]
				for j := range size {
					items := dot(d.times[j], p.sizes)
					for a, rows := range p.sums {
						means[i][a][from+j] = weighted(rows, d.weights[j][a], d.times[j]) / (float64(len(rows)) * items)
					}
				}
			}
		})
	}
	wg.Wait()
}

// weighted is Σ_r w[r] Σ_g times[g]·rows[r][g].
func weighted(rows [][]float64, w, times []float64) float64 {
	var sum float64
	for r, row := range rows {
		if w[r] != 0 {
			sum += float64(w[r] * dot(times, row))
		}
	}
	return sum
}

// dot is Σ x·y in four partial sums, which keeps a processor's adders busy.
func dot(x, y []float64) float64 {
	y = y[:len(x)]
	var a, b, c, d float64
	i := 0
	for ; i+4 <= len(x); i += 4 {
		a += float64(x[i] * y[i])
		b += float64(x[i+1] * y[i+1])
		c += float64(x[i+2] * y[i+2])
		d += float64(x[i+3] * y[i+3])
	}
	for ; i < len(x); i++ {
		a += float64(x[i] * y[i])
	}
	return (a + b) + (c + d)
}

// percentile is the interval that holds the middle of drawn values, which it may
// reorder; ok is false if there are none.
func percentile(values []float64, kind IntervalKind) *Interval {
	values = slices.DeleteFunc(values, math.IsNaN)
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	return &Interval{Lo: stat.Quantile(values, 0.5-level/2), Hi: stat.Quantile(values, 0.5+level/2), Kind: kind, Method: "bootstrap"}
}
