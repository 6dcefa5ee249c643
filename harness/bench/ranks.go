package bench

import (
	"fmt"
	"time"

	"exp/kernels"
	"exp/train/ranks"
)

// RanksOptions say what RunRanks measures.
type RanksOptions struct {
	Floats int // of a vector, as many as a model's gradient has
	Repeat int
}

// DefaultRanksOptions is a gradient of 10 million parameters.
func DefaultRanksOptions() RanksOptions { return RanksOptions{Floats: 10e6, Repeat: 5} }

// Validate returns an error if nothing can be measured.
func (o RanksOptions) Validate() error {
	if o.Floats < 1 || o.Floats > 1<<28 {
		return fmt.Errorf("a vector of %d floats: want 1 to %d", o.Floats, 1<<28)
	}
	if o.Repeat < 1 {
		return fmt.Errorf("%d repeats: want 1 or more", o.Repeat)
	}
	return nil
}

// RanksReport is how long ranks take to sum a vector of each and to have the sum
// everywhere.
type RanksReport struct {
	Ranks         int    `json:"ranks"`
	Floats        int    `json:"floats"`
	ReduceScatter Spread `json:"reduce_scatter_ms"` // the fixed tree; each rank gets a shard
	Gather        Spread `json:"gather_ms"`         // of the shards
	Both          Spread `json:"both_ms"`
	AllReduce     Spread `json:"all_reduce_ms"` // the library's, whose order of adding is its own
}

// Ratio is the time of the fixed tree over the library's.
func (r *RanksReport) Ratio() float64 { return r.Both.Median / r.AllReduce.Median }

// RunRanks measures the ranks' sums in turns with the library's, which allReduce leaves on
// every rank and which no run uses. All ranks call it; the report is the first one's.
func RunRanks(be kernels.Backend, g ranks.Group, allReduce func(x kernels.Buffer) error,
	o RanksOptions) (*RanksReport, error) {
	slices := 1
	for slices < g.Size() {
		slices *= 2
	}
	x, err := be.Alloc(kernels.F32, o.Floats)
	if err != nil {
		return nil, err
	}
	defer be.Free(x)
	sum, err := ranks.NewSum(be, g, slices, x)
	if err != nil {
		return nil, err
	}
	defer sum.Close()
	present := make([]bool, slices)
	for i := range present {
		present[i] = true
	}
	var scatter, gather, both, library []float64
	for turn := -1; turn < o.Repeat; turn++ { // the first one warms up
		be.Zero(x)
		times, err := inTurns(g,
			func() error { return sum.Of(present, func(int) {}) },
			func() error { be.Sync(); return ranks.Gather(g, x, sum.Ends()) },
			func() error { return allReduce(x) })
		if err != nil {
			return nil, err
		}
		if turn >= 0 {
			scatter, gather = append(scatter, times[0]), append(gather, times[1])
			both, library = append(both, times[0]+times[1]), append(library, times[2])
		}
	}
	return &RanksReport{Ranks: g.Size(), Floats: o.Floats, ReduceScatter: spreadOf(scatter), Gather: spreadOf(gather),
		Both: spreadOf(both), AllReduce: spreadOf(library)}, nil
}

// inTurns returns the milliseconds of each function, from when all ranks begin it until all
// have ended it.
func inTurns(g ranks.Group, list ...func() error) ([]float64, error) {
	var times []float64
	for _, f := range list {
		if _, err := ranks.Any(g, false); err != nil {
			return nil, err
		}
		start := time.Now()
		if err := f(); err != nil {
			return nil, err
		}
		if _, err := ranks.Any(g, false); err != nil {
			return nil, err
		}
		times = append(times, time.Since(start).Seconds()*1e3)
	}
	return times, nil
}
