package trackers

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"exp/experiments/aside"
	"exp/experiments/store"
)

// Formats lists the export formats: tensorboard writes a folder, the others a file.
func Formats() []string { return []string{"tensorboard", "csv", "parquet", "mlflow"} }

// Written is the result of Write.
type Written struct {
	Runs   int
	Series int
	Points int64
	Files  int
}

// Write writes every point of the runs' series to path, which must not exist and appears
// when complete. about returns a metric's description in Markdown, "" for none, for
// formats that keep descriptions.
func Write(ctx context.Context, db *store.DB, runs []store.Run, format, path string,
	about func(metric string) string) (*Written, error) {
	write, ok := map[string]func(w *writer, path string) error{
		"tensorboard": (*writer).tensorBoard, "csv": (*writer).csv, "parquet": (*writer).parquet,
		"mlflow": (*writer).mlflow}[format]
	if !ok {
		return nil, fmt.Errorf("trackers: no format %q", format)
	}
	// The rename replaces something that appears under this name only if it is a file.
	if _, err := os.Lstat(path); err == nil {
		return nil, &FormatError{Path: path, Msg: "it already exists", Help: "name a new file or folder"}
	}
	made, remove, err := aside.Folder(path)
	if err != nil {
		return nil, err
	}
	defer remove()
	w := &writer{ctx: ctx, db: db, runs: runs, about: about}
	if err := write(w, made); err != nil {
		return nil, err
	}
	w.done.Runs = len(runs)
	return &w.done, os.Rename(made, path)
}

// writer is one Write.
type writer struct {
	ctx   context.Context
	db    *store.DB
	runs  []store.Run
	done  Written
	about func(metric string) string
}

// curves reads the series of a run and the time of each step; steps without one have
// the time of the run's end.
func (w *writer) curves(r store.Run) ([]store.Curve, func(step int64) time.Time, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, nil, err
	}
	curves, err := w.db.Metrics(w.ctx, r.ID, "", 0, store.AllSteps)
	if err != nil {
		return nil, nil, err
	}
	rows, err := w.db.Steps(w.ctx, r.ID, math.MinInt64, math.MaxInt64)
	if err != nil {
		return nil, nil, err
	}
	times := make(map[int64]time.Time, len(rows))
	for _, s := range rows {
		times[s.Det.Step] = s.Time
	}
	w.done.Series += len(curves)
	for _, c := range curves {
		w.done.Points += int64(len(c.Steps))
	}
	return curves, func(step int64) time.Time {
		if t, ok := times[step]; ok {
			return t
		}
		if r.Ended.IsZero() {
			return r.Created
		}
		return r.Ended
	}, nil
}

// toFile writes a file through f.
func (w *writer) toFile(path string, f func(out *bufio.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	out := bufio.NewWriterSize(file, 1<<18)
	w.done.Files++
	return errors.Join(f(out), out.Flush(), file.Close())
}

// point is a row of csv and parquet: the columns of `exp metrics -o csv`, and the time.
type point struct {
	Run    string    `parquet:"run,dict"`
	Name   string    `parquet:"name,dict"`
	Seed   int64     `parquet:"seed"`
	Metric string    `parquet:"metric,dict"`
	Step   int64     `parquet:"step"`
	Value  float64   `parquet:"value"`
	Time   time.Time `parquet:"time,timestamp(millisecond)"`
}

// points calls f for each point of all runs.
func (w *writer) points(f func(p point) error) error {
	for _, r := range w.runs {
		curves, at, err := w.curves(r)
		if err != nil {
			return err
		}
		p := point{Run: r.RID.String(), Name: r.Name, Seed: r.Seed}
		for _, c := range curves {
			p.Metric = c.Name
			for i, step := range c.Steps {
				p.Step, p.Value, p.Time = step, c.Values[i], at(step).UTC()
				if err := f(p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (w *writer) csv(path string) error {
	return w.toFile(path, func(out *bufio.Writer) error {
		table := csv.NewWriter(out)
		err := table.Write([]string{"run", "name", "seed", "metric", "step", "value", "time"})
		if err != nil {
			return err
		}
		err = w.points(func(p point) error {
			return table.Write([]string{p.Run, p.Name, strconv.FormatInt(p.Seed, 10), p.Metric,
				strconv.FormatInt(p.Step, 10),
				strconv.FormatFloat(p.Value, 'g', -1, 64), p.Time.Format("2006-01-02T15:04:05.000Z")})
		})
		table.Flush()
		return errors.Join(err, table.Error())
	})
}

// parquetRows is the number of rows written at once.
const parquetRows = 4096

func (w *writer) parquet(path string) error {
	return w.toFile(path, func(out *bufio.Writer) error {
		table := parquet.NewGenericWriter[point](out, parquet.Compression(&parquet.Zstd),
			parquet.CreatedBy("exp", "", ""))
		rows := make([]point, 0, parquetRows)
		flush := func() error {
			_, err := table.Write(rows)
			rows = rows[:0]
			return err
		}
		err := w.points(func(p point) error {
			if rows = append(rows, p); len(rows) < parquetRows {
				return nil
			}
			return flush()
		})
		return errors.Join(err, flush(), table.Close())
	})
}

// tensorBoard writes a folder for each run with one event file, the points by step.
// TensorBoard keeps scalars as float32.
func (w *writer) tensorBoard(dir string) error {
	for _, r := range w.runs {
		curves, at, err := w.curves(r)
		if err != nil {
			return err
		}
		err = w.toFile(filepath.Join(dir, folder(r), eventFile(r)), func(out *bufio.Writer) error {
			if _, err := out.Write(appendEvent(nil, r.Created, 0, "", 0)); err != nil {
				return err
			}
			next := make([]int, len(curves))
			buffer := []byte(nil)
			for _, step := range stepsOf(curves) {
				buffer = buffer[:0]
				for i, c := range curves {
					if k := next[i]; k < len(c.Steps) && c.Steps[k] == step {
						description := ""
						if k == 0 {
							description = w.about(c.Name)
						}
						buffer = appendDescribed(buffer, at(step), step, c.Name, c.Values[k], description)
						next[i]++
					}
				}
				if _, err := out.Write(buffer); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func stepsOf(curves []store.Curve) []int64 {
	var list []Series
	for _, c := range curves {
		list = append(list, Series{Steps: c.Steps})
	}
	return steps(list)
}

// notInNames matches characters not allowed in folder names and MLflow keys.
var notInNames = regexp.MustCompile(`[^/\w.\- :]`)

// folder returns the name of a run's folder.
func folder(r store.Run) string {
	return strings.ReplaceAll(notInNames.ReplaceAllString(r.Name, "_"), "/", "_") + "-" + strconv.FormatInt(r.Seed,
		10) + "-" + r.RID.Short()
}
