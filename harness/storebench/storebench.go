// Package storebench measures the experiment store on a store that it makes: 10,000
// runs and 10⁷ points unless other sizes are asked for, in a folder that is removed
// afterwards. Each figure stands beside the goal that the design sets for it.
//
// What a person waits for (a list, a comparison, a report) is measured as whole
// processes, from start to exit, with warm caches of the operating system. A figure
// is the median of its repeats, with the least and the greatest. It is no test of
// right results, and of what a killed process loses: those are tests of
// experiments/store and cmd/exp.
package storebench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"exp/experiments/blob"
	"exp/experiments/store"
)

// Options say how large the store is and what runs the program.
type Options struct {
	Dir    string // where the store is made, in a new folder; empty is the system's
	Runs   int    // in all
	Arms   int    // of them runs of each of two arms, with scores and Steps steps of Metrics metrics
	Steps  int
	Long   int // points of the one series of one run
	Repeat int // of what takes long; of what is short there are more

	// Exec runs the program with arguments to its end. Nil: what needs processes is
	// left out.
	// It returns the processor time that it took.
	Exec func(ctx context.Context, args ...string) (time.Duration, error)
	// Draw draws one figure. Nil: left out.
	Draw func() error
}

// Metrics is how many metrics a step has.
const Metrics = 60

// DefaultOptions are 10,000 runs and 10⁷ points: 6 million of the two arms, one
// million of the long series, 300 of each other run.
func DefaultOptions() Options {
	return Options{Runs: 10_000, Arms: 50, Steps: 1000, Long: 1_000_000, Repeat: 5}
}

// smallPoints is how many points a run has that is of no arm: 60 steps of five
// metrics.
const smallPoints, smallMetrics = 300, 5

// Points is how many points the store has.
func (o Options) Points() int {
	return 2*o.Arms*o.Steps*Metrics + o.Long + (o.Runs-2*o.Arms-1)*smallPoints
}

// Validate reports what cannot be measured.
func (o Options) Validate() error {
	if o.Arms < 1 || o.Steps < 1 || o.Long < 2 || o.Repeat < 1 || o.Runs < 2*o.Arms+2 {
		return fmt.Errorf("storebench: %d runs, two arms of %d with %d steps, %d points, %d repeats: all must be positive, and the runs more than the arms have",
			o.Runs, o.Arms, o.Steps, o.Long, o.Repeat)
	}
	return nil
}

// Figure is one thing that was measured.
type Figure struct {
	Item  string  `json:"item"`
	Value float64 `json:"value"` // median of the repeats, by the clock
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
	// CPU is the median by processor time, of all threads: what Value would be on one
	// core that does nothing else. 0: not measured.
	CPU     float64 `json:"cpu"`
	Unit    string  `json:"unit"`
	Goal    float64 `json:"goal"`
	AtLeast bool    `json:"at_least"` // the goal is a lower bound
	Met     bool    `json:"met"`      // by the median
}

// Report is the outcome.
type Report struct {
	Suite   string   `json:"suite"`
	Runs    int      `json:"runs"`
	Points  int      `json:"points"`
	Bytes   int64    `json:"store_bytes"`
	MadeS   float64  `json:"made_s"` // seconds that making the store took
	Figures []Figure `json:"figures"`
}

// Watcher is told how it goes on.
type Watcher interface {
	Start(what string, total int)
	Done(n int)                           // of total
	End(figure float64, unit, met string) // met: "goal met", "goal missed" or empty
}

// SpaceError is returned where there is no room for the store.
type SpaceError struct {
	Dir        string
	Need, Free int64
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("the store for measuring takes up to %d MB, %s has %d MB free", e.Need/1e6, e.Dir, e.Free/1e6)
}

// Unwrap returns syscall.ENOSPC.
func (e *SpaceError) Unwrap() error { return syscall.ENOSPC }

// Hint says what a person can do.
func (e *SpaceError) Hint() string { return "TMPDIR names another place" }

// bytesPerPoint is what a point may take while it is made: in the database and in its
// log.
const bytesPerPoint = 90

// Run makes the store and measures. The folder is removed in any case.
func Run(ctx context.Context, o Options, w Watcher) (report *Report, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(o.Dir, "exp-bench-store-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	free, err := blob.At(dir).Free()
	if err != nil {
		return nil, err
	}
	if need := int64(o.Points()) * bytesPerPoint; free < need {
		return nil, &SpaceError{Dir: filepath.Dir(dir), Need: need, Free: free}
	}
	s := &suite{ctx: ctx, o: o, w: w, dir: filepath.Join(dir, "store"), tmp: dir}
	s.report = Report{Suite: "store", Runs: o.Runs, Points: o.Points(), Figures: []Figure{}}
	for _, part := range []func() error{s.hashing, s.steps, s.make, s.open, s.overview, s.processes, s.draw} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	return &s.report, nil
}

// suite is one execution.
type suite struct {
	ctx    context.Context
	o      Options
	w      Watcher
	dir    string // of the store
	tmp    string
	report Report
}

// add adds a figure and shows it. cpu may be nil.
func (s *suite) add(item string, values, cpu []float64, unit string, goal float64, atLeast bool) {
	values, cpu = slices.Sorted(slices.Values(values)), slices.Sorted(slices.Values(cpu))
	f := Figure{Item: item, Value: median(values), Min: values[0], Max: values[len(values)-1], CPU: median(cpu), Unit: unit, Goal: goal, AtLeast: atLeast}
	f.Met = f.Value <= goal
	if atLeast {
		f.Met = f.Value >= goal
	}
	s.report.Figures = append(s.report.Figures, f)
	met := "goal missed"
	if f.Met {
		met = "goal met"
	}
	s.w.End(f.Value, unit, met)
}

// median is that of a sorted list; 0 of an empty one.
func median(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// times runs f n times and returns how long each took, in units of per, by the clock
// and in processor time, which f returns.
func (s *suite) times(n int, per time.Duration, f func() (time.Duration, error)) (wall, cpu []float64, err error) {
	for i := range n {
		if err := s.ctx.Err(); err != nil {
			return nil, nil, err
		}
		start := time.Now()
		used, err := f()
		if err != nil {
			return nil, nil, err
		}
		wall = append(wall, float64(time.Since(start))/float64(per))
		cpu = append(cpu, float64(used)/float64(per))
		s.w.Done(i + 1)
	}
	return wall, cpu, nil
}

// here returns the processor time of f in this process.
func here(f func() error) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		before := processTime()
		err := f()
		return processTime() - before, err
	}
}

// timed measures f n times in milliseconds.
func (s *suite) timed(item string, n int, goal float64, f func() (time.Duration, error)) error {
	s.w.Start(item, n)
	wall, cpu, err := s.times(n, time.Millisecond, f)
	if err != nil {
		return fmt.Errorf("%s: %w", item, err)
	}
	s.add(item, wall, cpu, "ms", goal, false)
	return nil
}

// open measures opening the store and reading its newest run.
func (s *suite) open() error {
	return s.timed(fmt.Sprintf("open a store of %s points", count(s.o.Points())), 4*s.o.Repeat, 10, here(func() error {
		db, err := store.Open(s.dir, store.Options{ReadOnly: true})
		if err != nil {
			return err
		}
		_, err = db.Runs(s.ctx, store.RunQuery{Limit: 1})
		return errors.Join(err, db.Close())
	}))
}

// overview measures what a display of 2,000 pixels needs of the long series.
func (s *suite) overview() error {
	db, err := store.Open(s.dir, store.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer db.Close()
	run, err := db.Run(s.ctx, longRID())
	if err != nil {
		return err
	}
	return s.timed(fmt.Sprintf("overview of a series of %s points in 2000 buckets", count(s.o.Long)), s.o.Repeat, 300, here(func() error {
		buckets, err := db.Overview(s.ctx, run.ID, longSeries, 2000)
		points := int64(0)
		for _, b := range buckets {
			points += b.N
		}
		if err == nil && points != int64(s.o.Long) {
			err = fmt.Errorf("the buckets have %d points", points)
		}
		return err
	}))
}

// processes measures commands from their start to their end.
func (s *suite) processes() error {
	if s.o.Exec == nil {
		return nil
	}
	few := min(10, s.o.Arms)
	// seeds names the first n runs of each arm.
	seeds := func(command string, n int, more ...string) []string {
		args := []string{command}
		for _, name := range arms {
			for i := range n {
				args = append(args, fmt.Sprintf("%s#%d", name, i))
			}
		}
		return append(args, more...)
	}
	n := 0
	out := func() string { n++; return filepath.Join(s.tmp, fmt.Sprintf("report-%d", n)) }
	for _, c := range []struct {
		item   string
		repeat int
		goal   float64
		args   func() []string
	}{
		{"startup: exp version", 4 * s.o.Repeat, 15, func() []string { return []string{"version"} }},
		{fmt.Sprintf("ls of 50 of %s runs", count(s.o.Runs)), 2 * s.o.Repeat, 25, func() []string { return []string{"ls", "-n", "50"} }},
		{fmt.Sprintf("ls of all %s runs", count(s.o.Runs)), 2 * s.o.Repeat, 80, func() []string { return []string{"ls", "--all"} }},
		{fmt.Sprintf("compare 2 × %d runs", few), s.o.Repeat, 150, func() []string { return seeds("compare", few) }},
		{fmt.Sprintf("compare %d runs of %d steps", 2*s.o.Arms, s.o.Steps), s.o.Repeat, 1000, func() []string {
			return seeds("compare", s.o.Arms)
		}},
		{fmt.Sprintf("report of 2 × %d runs", min(5, few)), s.o.Repeat, 3000, func() []string {
			return seeds("report", min(5, few), "--out", out())
		}},
	} {
		err := s.timed(c.item, c.repeat, c.goal, func() (time.Duration, error) { return s.o.Exec(s.ctx, append(c.args(), "--store", s.dir)...) })
		if err != nil {
			return err
		}
	}
	return nil
}

// draw measures one figure.
func (s *suite) draw() error {
	if s.o.Draw == nil {
		return nil
	}
	return s.timed("one figure", 2*s.o.Repeat, 100, here(s.o.Draw))
}

// count is a number for people.
func count(n int) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.3g million", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%d,%03d", n/1000, n%1000)
	}
	return fmt.Sprint(n)
}
