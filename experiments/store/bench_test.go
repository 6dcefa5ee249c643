package store

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"slices"
	"strconv"
	"testing"

	"exp/experiments/ident"
)

// step60 is a step of 60 metrics, 20 of them measured, as the trainer makes it.
func step60(n int64) Step {
	s := Step{
		Det: ident.Det{Step: n, Items: digest("i%d", n), Tokens: digest("t%d", n), LogProbs: digest("l%d", n),
			Rewards: digest("r%d", n), Metrics: map[string]float64{}},
		Measured: map[string]float64{},
		Chain:    digest("chain %d", n),
		Tokens:   4096,
	}
	for i := range 40 {
		s.Det.Metrics[fmt.Sprintf("actor/metric_%02d", i)] = float64(n) / float64(i+1)
	}
	for i := range 20 {
		s.Measured[fmt.Sprintf("timing_s/phase_%02d", i)] = 1 / float64(i+1)
	}
	return s
}

// What the training goroutine pays for a step of 60 metrics: the goal is 5 µs.
func BenchmarkHandOver(b *testing.B) {
	w := &StepWriter{db: &DB{clock: clock()}, queue: make(chan item, queueLength)}
	s := step60(1)
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Record(s); err != nil {
			b.Fatal(err)
		}
		<-w.queue
	}
}

// What the store's goroutine pays for it: the goal is 250 µs.
func BenchmarkWriteStep(b *testing.B) {
	db := open(b)
	run := ensure(b, db, newRun("x", 0))
	w := db.NewStepWriter(run.ID, 0, nil)
	defer w.Close()
	s := step60(0)
	for b.Loop() {
		s.Det.Step++
		if err := w.write(item{step: &s, t: s.Det.Step}); err != nil {
			b.Fatal(err)
		}
	}
}

// What the completions of a step of training cost the store, with their verdicts.
func BenchmarkRecordSamples(b *testing.B) {
	db := open(b)
	_, gen := evalRun(b, db)
	samples, packs := pack(b, db, gen.Home, 1024)
	verdicts := make([]Verdict, len(samples))
	for step := int64(1); b.Loop(); step++ {
		for i := range samples {
			samples[i].Scope, samples[i].Step = "train", step
		}
		if err := db.AddSamples(b.Context(), samples, packs); err != nil {
			b.Fatal(err)
		}
		for i, s := range samples {
			verdicts[i] = Verdict{Sample: s.ID, Graded: true, Answer: "1+2*3"}
		}
		if err := db.AddVerdicts(b.Context(), Scorer{digest("s"), "s"}, verdicts); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(samples)), "µs/sample")
}

// Reading the curves of a run of 1000 steps of 60 metrics: of one of them, and of
// all. The bytes of a point on disk, its share of the steps' rows included, come
// along.
func BenchmarkReadMetrics(b *testing.B) {
	db := open(b)
	run := ensure(b, db, newRun("x", 0))
	const steps = 1000
	before := pages(b, db)
	recordSteps(b, db, run.ID, steps, step60)
	after := pages(b, db)
	for glob, want := range map[string]int{"actor/metric_07": 1, "*": 60} {
		b.Run("series="+strconv.Itoa(want), func(b *testing.B) {
			for b.Loop() {
				curves, err := db.Metrics(context.Background(), run.ID, glob, 0, AllSteps)
				if err != nil || len(curves) != want || len(curves[0].Steps) != steps {
					b.Fatalf("%d curves, %v", len(curves), err)
				}
			}
			b.ReportMetric(float64(want*steps)*float64(b.N)/b.Elapsed().Seconds(), "points/s")
			b.ReportMetric(4096*float64(after-before)/(60*steps), "B/point")
		})
	}
}

// recordSteps writes steps 1 to n of a run.
func recordSteps(b *testing.B, db *DB, run, n int64, step func(n int64) Step) {
	b.Helper()
	w := db.NewStepWriter(run, 0, nil)
	for i := range n {
		if err := w.Record(step(i + 1)); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}

// Opening a store of 60,000 points and reading its newest run: the goal is 10 ms.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	db := openAt(b, dir, Options{Create: true, Clock: clock()})
	recordSteps(b, db, ensure(b, db, newRun("x", 0)).ID, 1000, step60)
	for b.Loop() {
		db, err := Open(dir, Options{ReadOnly: true})
		if err != nil {
			b.Fatal(err)
		}
		if runs, err := db.Runs(b.Context(), RunQuery{Limit: 1}); err != nil || len(runs) != 1 {
			b.Fatalf("%d runs, %v", len(runs), err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// What a display of 2,000 pixels needs of a long series: the goal is 0.3 µs a point.
func BenchmarkOverview(b *testing.B) {
	const steps = 100_000
	db := open(b)
	run := ensure(b, db, newRun("x", 0))
	recordSteps(b, db, run.ID, steps, func(n int64) Step {
		return Step{Det: ident.Det{Step: n, Metrics: map[string]float64{"loss": 1 / float64(n)}}, Chain: digest("chain %d", n)}
	})
	for b.Loop() {
		buckets, err := db.Overview(b.Context(), run.ID, "loss", 2000)
		if err != nil || len(buckets) != 2000 {
			b.Fatalf("%d buckets, %v", len(buckets), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*steps), "ns/point")
}

// Importing a run of 60,000 points: the goal is 700,000 points a second.
func BenchmarkImport(b *testing.B) {
	const steps = 1000
	from := open(b)
	run := ensure(b, from, newRun("x", 0))
	recordSteps(b, from, run.ID, steps, step60)
	tables := exported(b, from, run.ID)
	for b.Loop() {
		b.StopTimer()
		db, next := open(b), 0
		b.StartTimer()
		_, err := db.ImportRows(b.Context(), func() (PortableRows, error) {
			if next == len(tables) {
				return PortableRows{}, io.EOF
			}
			next++
			return tables[next-1].rows(), nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(60*steps*b.N)/b.Elapsed().Seconds(), "points/s")
}

// portableTable is a table of an export, held in memory.
type portableTable struct {
	head PortableRows
	list [][]any
}

// rows returns the table from its first row on; the importer changes the rows it reads.
func (t portableTable) rows() PortableRows {
	p, i := t.head, 0
	p.Next = func() ([]any, error) {
		if i == len(t.list) {
			return nil, io.EOF
		}
		i++
		return slices.Clone(t.list[i-1]), nil
	}
	return p
}

// exported reads everything that a bundle of a run holds.
func exported(b *testing.B, db *DB, run int64) (tables []portableTable) {
	b.Helper()
	err := db.ExportRows(b.Context(), []int64{run}, func(p PortableRows) error {
		t := portableTable{head: p}
		for {
			row, err := p.Next()
			if err == io.EOF {
				tables = append(tables, t)
				return nil
			}
			if err != nil {
				return err
			}
			t.list = append(t.list, slices.Clone(row))
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	return tables
}

// pages is the size of the database in pages of 4 KiB.
func pages(b *testing.B, db *DB) (n int) {
	b.Helper()
	if err := db.r.QueryRow(`PRAGMA page_count`).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

// Lists of 10,000 runs, as exp ls --all reads them: opening the store included.
func BenchmarkListRuns(b *testing.B) {
	dir := b.TempDir()
	manyRuns(b, dir, 10_000)
	for _, bench := range []struct {
		name   string
		query  RunQuery
		fields []Field
		want   int
	}{
		{"all", RunQuery{}, nil, 10_000},
		{"newest50", RunQuery{Limit: 50}, nil, 50},
		{"filter", RunQuery{}, []Field{{Kind: FieldConfig, Name: "train.steps"}, {Kind: FieldMetric, Name: "loss"}}, 10_000},
	} {
		b.Run("runs="+bench.name, func(b *testing.B) {
			for b.Loop() {
				db, err := Open(dir, Options{ReadOnly: true})
				if err != nil {
					b.Fatal(err)
				}
				runs, _, err := db.RunFields(context.Background(), bench.query, bench.fields)
				if err != nil || len(runs) != bench.want {
					b.Fatalf("%d runs, %v", len(runs), err)
				}
				db.Close()
			}
		})
	}
}

// manyRuns makes a store of n finished runs, 5 seeds to an experiment.
func manyRuns(b *testing.B, dir string, n int) {
	db, err := Open(dir, Options{Create: true, Clock: clock()})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	err = db.write(ctx, "fill", func(tx *sql.Tx) error {
		for i := range n {
			r := newRun(fmt.Sprintf("experiment-%d", i/5), int64(i%5))
			if err := addConfig(ctx, tx, r.Config); err != nil {
				return err
			}
			id, err := queryOne(ctx, tx, scanInt, `INSERT INTO runs (rid, xid, name, task, algo, model, seed, numerics, status, created,
					started, ended, steps, steps_total, config, code, chain, headline, h1, h2, h3)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'done', ?, 1, 2, 100, 100, ?, ?, ?, 'pass@1,distinct,reward', 0.5, 3, 0.7) RETURNING id`,
				r.RID, r.XID, r.Name, r.Task, r.Algo, r.Model, r.Seed, r.Numerics, i, r.Config.Digest, r.Code, digest("c"))
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO series (run, name, unit, det, n, last) VALUES (?, 'loss', '', 1, 1, 0.5)`, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// A curve of a million points for a display of 600 pixels: the goal is 300 ms.
func BenchmarkSpans(b *testing.B) {
	const steps = 1_000_000
	db := open(b)
	run := ensure(b, db, newRun("x", 0))
	longCurve(b, db, run.ID, "loss", steps)
	for b.Loop() {
		spans, err := db.Spans(b.Context(), run.ID, []string{"loss"}, Grid{From: 1, To: steps, N: 600})
		if err != nil || len(spans["loss"]) != 600 {
			b.Fatalf("%d spans, %v", len(spans["loss"]), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*steps), "ns/point")
}

// longCurve records the points 1/step of a series in one statement.
func longCurve(b *testing.B, db *DB, run int64, name string, steps int) {
	b.Helper()
	err := db.write(b.Context(), "fill", func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT INTO series (run, name, unit, det, n, last, last_step) VALUES (?1, ?2, '', 1, ?3, 1.0 / ?3, ?3)`,
			run, name, steps)
		if err != nil {
			return err
		}
		_, err = tx.Exec(`WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ?3)
			INSERT INTO metrics SELECT ?1, c.n, s.id, 1.0 / c.n FROM c, series s WHERE s.run = ?1 AND s.name = ?2`, run, name, steps)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}
