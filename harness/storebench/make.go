package storebench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// arms are the names of the two arms, and their algorithms.
var arms = [2]string{"flowrl", "ppo"}

const (
	longSeries = "loss"
	items      = 100 // problems of the suite
	samples    = 4   // of each problem
)

func longRID() ident.Digest { return sum("long") }

// known metrics come first, so that a report finds what it draws.
var known = []string{"critic/score/mean", "actor/entropy", "kl/ref_k3", "response_length/mean", "actor/grad_norm", "actor/ppo_kl", "train/accuracy",
	"actor/log_z", "actor/residual_abs", "actor/pg_loss", "critic/vf_loss", "perf/throughput"}

func metricName(i int) string {
	if i < len(known) {
		return known[i]
	}
	return fmt.Sprintf("actor/metric_%02d", i)
}

// made is a run of the store that is made.
type made struct {
	rid, xid ident.Digest
	name     string
	algo     string
	seed     int
	metrics  int
	steps    int
	scores   []byte // the blob's contents; nil: the run has no evaluation
}

// runs lists what is made.
func (s *suite) runs() []made {
	var list []made
	for i := range s.o.Runs - 2*s.o.Arms - 1 {
		name := fmt.Sprintf("experiment-%d", i/5)
		list = append(list, made{rid: sum(fmt.Sprint("run ", i)), xid: sum(name), name: name, algo: "flowrl", seed: i % 5, metrics: smallMetrics, steps: smallPoints / smallMetrics})
	}
	list = append(list, made{rid: longRID(), xid: longRID(), name: "long", algo: "ppo", metrics: 1, steps: s.o.Long})
	rng := rand.New(rand.NewPCG(1, 1))
	for seed := range s.o.Arms {
		for arm, name := range arms {
			list = append(list, made{rid: sum(fmt.Sprint(name, seed)), xid: sum(name), name: name, algo: name, seed: seed, metrics: Metrics, steps: s.o.Steps,
				scores: scoresOf(rng, 0.4+0.05*float64(arm))})
		}
	}
	return list
}

// scoresOf is what a run got right of each problem, as evaluations store it.
func scoresOf(rng *rand.Rand, p float64) []byte {
	type item struct {
		Problem string `json:"problem"`
		Samples int    `json:"samples"`
		Graded  int    `json:"n"`
		Correct int    `json:"c"`
	}
	var list []item
	for i := range items {
		it := item{Problem: problem(i), Samples: samples, Graded: samples}
		for range samples {
			if rng.Float64() < p {
				it.Correct++
			}
		}
		list = append(list, it)
	}
	b, err := json.Marshal(map[string]any{"items": list, "metrics": []any{}})
	if err != nil {
		panic("storebench: " + err.Error()) // numbers and text
	}
	return b
}

func problem(i int) string { return fmt.Sprintf("problem-%03d", i) }

// make makes the store, some runs at a time, and measures the import of the arms'
// points: its speed, and what a point takes on disk.
func (s *suite) make() error {
	start := time.Now()
	all := s.runs()
	const chunk = 50
	s.w.Start(fmt.Sprintf("make a store of %s runs", count(len(all))), len(all))
	small, big := all[:len(all)-2*s.o.Arms], all[len(all)-2*s.o.Arms:]
	for at := 0; at < len(small); at += chunk {
		if err := s.put(small[at:min(at+chunk, len(small))]); err != nil {
			return err
		}
		s.w.Done(at)
	}
	s.w.End(float64(len(small)), "runs", "")
	before, err := s.size()
	if err != nil {
		return err
	}
	item := "import points"
	s.w.Start(item, len(big))
	var rates, cpu []float64
	const few = 10
	for at := 0; at < len(big); at += few {
		part := big[at:min(at+few, len(big))]
		begun, before := time.Now(), processTime()
		if err := s.put(part); err != nil {
			return err
		}
		points := float64(len(part)*s.o.Steps*Metrics) / 1e6
		rates = append(rates, points/time.Since(begun).Seconds())
		cpu = append(cpu, points/max((processTime()-before).Seconds(), 1e-9))
		s.w.Done(at + len(part))
	}
	s.add(item, rates, cpu, "million/s", 0.7, true)
	after, err := s.size()
	if err != nil {
		return err
	}
	s.w.Start("points on disk", 1)
	s.add("points on disk", []float64{float64(after-before) / float64(len(big)*s.o.Steps*Metrics)}, nil, "B/point", 30, false)
	s.report.Bytes, s.report.MadeS = after, time.Since(start).Seconds()
	return nil
}

// size is that of the closed database.
func (s *suite) size() (int64, error) {
	info, err := os.Stat(filepath.Join(s.dir, "exp.db"))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// put adds runs to the store, which is closed again: then its log is in the database.
func (s *suite) put(runs []made) (err error) {
	db, err := store.Open(s.dir, store.Options{Create: true})
	if err != nil {
		return err
	}
	defer func() {
		if e := db.Close(); err == nil {
			err = e
		}
	}()
	for _, r := range runs {
		if r.scores != nil {
			if _, err := db.Blobs.PutBytes(r.scores); err != nil {
				return err
			}
		}
	}
	tables := tablesOf(runs)
	_, err = db.ImportRows(s.ctx, func() (store.PortableRows, error) {
		if len(tables) == 0 {
			return store.PortableRows{}, io.EOF
		}
		t := tables[0]
		tables = tables[1:]
		return t, nil
	})
	return err
}

// rowsOf makes a table of rows that are called for one after the other; columns are
// "name TYPE, name TYPE". row returns nil after the last.
func rowsOf(table, columns string, row func(i int) []any) store.PortableRows {
	p := store.PortableRows{Table: table}
	for c := range strings.SplitSeq(columns, ", ") {
		name, kind, _ := strings.Cut(c, " ")
		p.Columns = append(p.Columns, store.Column{Name: name, Type: kind})
	}
	i := 0
	p.Next = func() ([]any, error) {
		r := row(i)
		i++
		if r == nil {
			return nil, io.EOF
		}
		for k, v := range r {
			switch v := v.(type) {
			case ident.Digest:
				r[k] = v[:]
			case int:
				r[k] = int64(v)
			}
		}
		return r, nil
	}
	return p
}

// each calls row for each run, from 0.
func each(runs []made, row func(i int, r *made) []any) func(i int) []any {
	return func(i int) []any {
		if i >= len(runs) {
			return nil
		}
		return row(i, &runs[i])
	}
}

// evaluated are the places of runs with scores.
func evaluated(runs []made) []int {
	var list []int
	for i, r := range runs {
		if r.scores != nil {
			list = append(list, i)
		}
	}
	return list
}

func configOf(r *made) string {
	return fmt.Sprintf(`{"name":%q,"algo":{"kind":%q},"train":{"steps":%d},"compare":{"vary":["algo"],"min_seeds":3},"eval":{"final":{"n":%d}}}`, r.name, r.algo, r.steps, samples)
}

// tablesOf are the rows of runs in the order of a bundle.
func tablesOf(runs []made) []store.PortableRows {
	scored := evaluated(runs)
	ofScored := func(row func(k int, r *made) []any) func(i int) []any {
		return func(i int) []any {
			if i >= len(scored) {
				return nil
			}
			return row(i, &runs[scored[i]])
		}
	}
	created := func(i int) int { return 1_700_000_000_000 + i }
	seen := map[string]bool{}
	var configs []*made
	for i := range runs {
		if text := configOf(&runs[i]); !seen[text] {
			seen[text] = true
			configs = append(configs, &runs[i])
		}
	}
	list := []store.PortableRows{
		rowsOf("blobs", "digest BLOB, size INTEGER, kind TEXT, created INTEGER", ofScored(func(_ int, r *made) []any {
			return []any{ident.Sum(r.scores), len(r.scores), "scores", created(0)}
		})),
		rowsOf("configs", "digest BLOB, json TEXT, source TEXT, origins TEXT", func(i int) []any {
			if i >= len(configs) {
				return nil
			}
			return []any{sum(configOf(configs[i])), configOf(configs[i]), "", "{}"}
		}),
	}
	if len(scored) > 0 {
		list = append(list, rowsOf("suites", "digest BLOB, name TEXT, version TEXT, scorer TEXT, license TEXT, n_items INTEGER", func(i int) []any {
			if i > 0 {
				return nil
			}
			return []any{sum("suite"), "countdown/test", "", "countdown/1", "", items}
		}), rowsOf("items", "suite INTEGER, item TEXT, cluster TEXT", func(i int) []any {
			if i >= items {
				return nil
			}
			return []any{1, problem(i), ""}
		}))
	}
	list = append(list,
		rowsOf("runs", "rid BLOB, xid BLOB, name TEXT, task TEXT, algo TEXT, model TEXT, seed INTEGER, numerics TEXT, device TEXT, status TEXT, created INTEGER, "+
			"started INTEGER, ended INTEGER, steps INTEGER, steps_total INTEGER, tokens INTEGER, wall_s REAL, config BLOB, chain BLOB, headline TEXT, h1 REAL, h2 REAL",
			each(runs, func(i int, r *made) []any {
				return []any{r.rid, r.xid, r.name, "countdown", r.algo, "2x32", r.seed, "cpu/fma", "cpu/avx2", "done", created(i), created(i), created(i + 60_000),
					r.steps, r.steps, r.steps * 4096, 60.0, sum(configOf(r)), ident.Sum(append(r.rid[:], "chain"...)), "pass@1,pass@4", 0.4, 0.7}
			})),
		rowsOf("attempts", "run INTEGER, n INTEGER, kind TEXT, host TEXT, pid INTEGER, device TEXT, build TEXT, started INTEGER, ended INTEGER, status TEXT, exit_code INTEGER, env TEXT",
			each(runs, func(i int, r *made) []any {
				return []any{i + 1, 1, "run", "host", 1, "cpu/avx2", "exp", created(i), created(i + 60_000), "done", 0, "{}"}
			})),
		// A run with scores has two stages: that sampled, and that scored.
		rowsOf("stages", "sid BLOB, run INTEGER, attempt INTEGER, kind TEXT, label TEXT, status TEXT, params TEXT, numerics TEXT, seed TEXT, started INTEGER, ended INTEGER", func(i int) []any {
			if i >= 2*len(scored) {
				return nil
			}
			kind, r := []string{"eval.gen", "eval.score"}[i%2], &runs[scored[i/2]]
			return []any{sum(kind + r.rid.String()), scored[i/2] + 1, scored[i/2] + 1, kind, "test", "done", `{"eval":{"final":{"n":4}}}`, "cpu/fma", "", created(i), created(i + 1000)}
		}),
		rowsOf("stage_io", "stage INTEGER, dir TEXT, role TEXT, digest BLOB, size INTEGER", ofScored(func(k int, r *made) []any {
			return []any{2*k + 2, "out", "scores", ident.Sum(r.scores), len(r.scores)}
		})),
		rowsOf("steps", "run INTEGER, step INTEGER, t INTEGER, tokens INTEGER, chain BLOB", stepRows(runs)),
		rowsOf("series", "run INTEGER, name TEXT, unit TEXT, det INTEGER, n INTEGER, last REAL, last_step INTEGER, min REAL, max REAL, argmin INTEGER, argmax INTEGER", seriesRows(runs)),
		rowsOf("metrics", "run INTEGER, step INTEGER, series INTEGER, value REAL", pointRows(runs)))
	if len(scored) > 0 {
		list = append(list, rowsOf("evals", "run INTEGER, stage_gen INTEGER, stage_score INTEGER, suite INTEGER, protocol BLOB, n INTEGER, metric TEXT, value REAL, n_items INTEGER, n_clusters INTEGER, infra_errors INTEGER",
			func(i int) []any {
				if i >= 2*len(scored) {
					return nil
				}
				k := i / 2
				return []any{scored[k] + 1, 2*k + 1, 2*k + 2, 1, sum("protocol"), samples, []string{"pass@1", "pass@4"}[i%2], 0.4, items, items, 0}
			}))
	}
	return list
}

// stepRows has a row for each step.
func stepRows(runs []made) func(i int) []any {
	run, step := 0, 0
	return func(int) []any {
		for run < len(runs) && step == runs[run].steps {
			run, step = run+1, 0
		}
		if run == len(runs) {
			return nil
		}
		step++
		chain := runs[run].rid
		chain[0], chain[1], chain[2] = byte(step), byte(step>>8), byte(step>>16)
		return []any{run + 1, step, 1_700_000_000_000 + step, 4096, chain}
	}
}

// seriesRows has a row for each metric of each run.
func seriesRows(runs []made) func(i int) []any {
	run, metric := 0, 0
	return func(int) []any {
		for run < len(runs) && metric == runs[run].metrics {
			run, metric = run+1, 0
		}
		if run == len(runs) {
			return nil
		}
		r := &runs[run]
		name := metricName(metric)
		if r.metrics == 1 {
			name = longSeries
		}
		metric++
		return []any{run + 1, name, "", 1, r.steps, 0.5, r.steps, -1.0, 1.0, 1, r.steps}
	}
}

// pointRows has a row for each point, step by step as they are stored.
func pointRows(runs []made) func(i int) []any {
	run, step, metric, first := 0, 1, 0, 1
	row := make([]any, 4)
	return func(int) []any {
		for run < len(runs) && metric == runs[run].metrics {
			metric, step = 0, step+1
			if step > runs[run].steps {
				first += runs[run].metrics
				run, step = run+1, 1
			}
		}
		if run == len(runs) {
			return nil
		}
		row[0], row[1], row[2], row[3] = int64(run+1), int64(step), int64(first+metric), math.Sin(float64(step)/float64(metric+1))
		metric++
		return row
	}
}
