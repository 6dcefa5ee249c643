package storebench

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// hashBytes is hashed by every thread at a time.
const hashBytes = 64 << 20

// hashing measures SHA-256 of what lies in memory, on one thread and on all.
func (s *suite) hashing() error {
	threads := runtime.GOMAXPROCS(0)
	data := make([]byte, hashBytes)
	one := func() error {
		_, _, err := ident.SumReader(bytes.NewReader(data))
		return err
	}
	rate := func(item string, threads int, f func() error) error {
		s.w.Start(item, s.o.Repeat)
		wall, cpu, err := s.times(s.o.Repeat, time.Second, here(f))
		for i := range wall {
			wall[i] = float64(threads) * hashBytes / 1e9 / wall[i]
			// Of each core, as the processor time is that of all threads.
			cpu[i] = float64(threads) * float64(threads) * hashBytes / 1e9 / max(cpu[i], 1e-9)
		}
		if err == nil {
			s.add(item, wall, cpu, "GB/s", float64(threads), true)
		}
		return err
	}
	if err := rate("hashing, 1 thread", 1, one); err != nil || threads == 1 {
		return err
	}
	return rate(fmt.Sprintf("hashing, %d threads", threads), threads, func() error {
		errs := make([]error, threads)
		var wg sync.WaitGroup
		for i := range threads {
			wg.Go(func() { errs[i] = one() })
		}
		wg.Wait()
		return errs[0]
	})
}

// steps measures what a training pays for a step of 60 metrics, in a store of its
// own: handing it over, and writing it.
func (s *suite) steps() error {
	dir := filepath.Join(s.tmp, "steps")
	db, err := store.Open(dir, store.Options{Create: true})
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	defer db.Close()
	run, _, err := db.EnsureRun(s.ctx, store.NewRun{RID: sum("steps"), XID: sum("steps"), Name: "steps", Config: store.Config{Digest: sum("config"), JSON: "{}"}})
	if err != nil {
		return err
	}
	w := db.NewStepWriter(run.ID, 0, nil)
	defer w.Close()
	// Fewer steps at a time than the writer's queue holds, so that none waits.
	const batch = 32
	var over, written, used []float64
	item := fmt.Sprintf("hand over a step of %d metrics", Metrics)
	batches := 8 * s.o.Repeat
	s.w.Start(item, batches)
	for b := range batches {
		var list []store.Step
		for i := range batch {
			list = append(list, stepOf(int64(b*batch+i+1)))
		}
		start, before := time.Now(), processTime()
		for _, st := range list {
			if err := w.Record(st); err != nil {
				return err
			}
		}
		handed := time.Since(start)
		if err := w.Flush(s.ctx); err != nil {
			return err
		}
		over = append(over, float64(handed.Nanoseconds())/1e3/batch)
		used = append(used, float64((processTime()-before).Nanoseconds())/1e3/batch)
		written = append(written, float64(time.Since(start).Nanoseconds())/1e3/batch)
		s.w.Done(b + 1)
	}
	s.add(item, over, nil, "µs", 5, false)
	item = fmt.Sprintf("write a step of %d metrics, one transaction", Metrics)
	s.w.Start(item, 1)
	s.add(item, written, used, "µs", 250, false)
	return nil
}

// stepOf is a step as a trainer makes it: 40 metrics that must repeat, 20 measured.
func stepOf(n int64) store.Step {
	st := store.Step{Det: ident.Det{Step: n, Items: sum("items"), Tokens: sum("tokens"), LogProbs: sum("logprobs"), Rewards: sum("rewards"), Metrics: map[string]float64{}},
		Measured: map[string]float64{}, Chain: ident.Sum(fmt.Appendf(nil, "chain %d", n)), Tokens: 4096}
	for i := range Metrics {
		v := math.Sin(float64(n) / float64(i+1))
		if i < 40 {
			st.Det.Metrics[metricName(i)] = v
		} else {
			st.Measured[metricName(i)] = v
		}
	}
	return st
}

func sum(text string) ident.Digest { return ident.Sum([]byte("exp/storebench/" + text)) }
