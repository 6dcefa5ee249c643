package trackers

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"exp/experiments/store"
)

// Formats lists the export formats: tensorboard and mlflow write a folder, the others a
// file.
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
	tmp, err := os.MkdirTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	w := &writer{ctx: ctx, db: db, runs: runs, about: about}
	made := filepath.Join(tmp, "made")
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
		name := fmt.Sprintf("events.out.tfevents.%010d.exp.%s", r.Created.Unix(), r.RID.Short())
		err = w.toFile(filepath.Join(dir, folder(r), name), func(out *bufio.Writer) error {
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

// mlflow writes a file store (mlflow/store/tracking/file_store.py): an experiment for
// each xid, a folder for each run, a file "milliseconds value step" for each metric. In
// keys "@" becomes "_at_", as verl does it. MLflow opens it with
// --backend-store-uri DIR.
func (w *writer) mlflow(dir string) error {
	experiments := []string{}
	for _, r := range w.runs {
		xid := r.XID.String()
		n := slices.Index(experiments, xid)
		if n < 0 {
			n = len(experiments)
			experiments = append(experiments, xid)
			meta := mlflowExperiment(strconv.Itoa(n+1), r)
			if err := w.toFile(filepath.Join(dir, strconv.Itoa(n+1), "meta.yaml"), meta); err != nil {
				return err
			}
		}
		if err := w.mlflowRun(filepath.Join(dir, strconv.Itoa(n+1)), strconv.Itoa(n+1), r); err != nil {
			return err
		}
	}
	return nil
}

// mlflowExperiment writes the description of an experiment.
func mlflowExperiment(id string, r store.Run) func(out *bufio.Writer) error {
	return yamlOf([][2]any{{"artifact_location", "./" + id}, {"creation_time", r.Created.UnixMilli()},
		{"experiment_id", id},
		{"last_update_time", r.Created.UnixMilli()}, {"lifecycle_stage", "active"},
		{"name", r.Name + " " + r.XID.Short()}})
}

// yamlOf writes keys with values, which JSON writes as YAML would.
func yamlOf(pairs [][2]any) func(out *bufio.Writer) error {
	return func(out *bufio.Writer) error {
		for _, p := range pairs {
			v, err := json.Marshal(p[1])
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(out, "%s: %s\n", p[0], v); err != nil {
				return err
			}
		}
		return nil
	}
}

// mlflowStatus are the numbers of MLflow's RunStatus.
func mlflowStatus(s store.Status) int {
	switch s {
	case store.Done:
		return 3 // FINISHED
	case store.Failed:
		return 4
	case store.Interrupted:
		return 5 // KILLED
	case store.Pending:
		return 2 // SCHEDULED
	}
	return 1 // RUNNING
}

func (w *writer) mlflowRun(dir, experiment string, r store.Run) error {
	curves, at, err := w.curves(r)
	if err != nil {
		return err
	}
	id := r.RID.String()[:32]
	root := filepath.Join(dir, id)
	end := any(nil)
	if !r.Ended.IsZero() {
		end = r.Ended.UnixMilli()
	}
	start := r.Started
	if start.IsZero() {
		start = r.Created
	}
	err = w.toFile(filepath.Join(root, "meta.yaml"),
		yamlOf([][2]any{{"artifact_uri", "./" + experiment + "/" + id + "/artifacts"}, {"end_time", end},
			{"entry_point_name", ""}, {"experiment_id", experiment}, {"lifecycle_stage", "active"}, {"run_id", id},
			{"run_name", folder(r)}, {"run_uuid", id},
			{"source_name", ""}, {"source_type", 4}, {"source_version", ""}, {"start_time", start.UnixMilli()},
			{"status", mlflowStatus(r.Status)},
			{"tags", []string{}}, {"user_id", "exp"}}))
	if err != nil {
		return err
	}
	for _, c := range curves {
		key := notInNames.ReplaceAllString(strings.ReplaceAll(c.Name, "@", "_at_"), "_")
		if !filepath.IsLocal(key) {
			key = strings.ReplaceAll(key, "/", "_")
		}
		err := w.toFile(filepath.Join(root, "metrics", filepath.FromSlash(key)), func(out *bufio.Writer) error {
			for i, step := range c.Steps {
				if _, err := fmt.Fprintf(out, "%d %s %d\n", at(step).UnixMilli(), pythonFloat(c.Values[i]),
					step); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return w.mlflowParams(root, r)
}

// pythonFloat formats a number for Python.
func pythonFloat(v float64) string {
	return strings.Replace(strings.ToLower(strconv.FormatFloat(v, 'g', -1, 64)), "+inf", "inf", 1)
}

// mlflowParams writes the configuration as parameters, and identity as tags.
func (w *writer) mlflowParams(root string, r store.Run) error {
	conf, err := w.db.Config(w.ctx, r.Config)
	if err != nil {
		return err
	}
	var tree map[string]any
	if err := json.Unmarshal([]byte(conf.JSON), &tree); err != nil {
		return fmt.Errorf("configuration of run %s: %w", r.RID.Short(), err)
	}
	write := func(folder, key, value string) error {
		return w.toFile(filepath.Join(root, folder, key), func(out *bufio.Writer) error {
			_, err := out.WriteString(value)
			return err
		})
	}
	var walk func(prefix string, v any) error
	walk = func(prefix string, v any) error {
		if m, ok := v.(map[string]any); ok {
			for name, inner := range m {
				if err := walk(prefix+"."+name, inner); err != nil {
					return err
				}
			}
			return nil
		}
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		return write("params", notInNames.ReplaceAllString(strings.TrimPrefix(prefix, "."), "_"),
			strings.Trim(string(text), `"`))
	}
	return errors.Join(walk("", tree), write("tags", "mlflow.runName", folder(r)),
		write("tags", "exp.run", r.RID.String()), write("tags", "exp.seed", strconv.FormatInt(r.Seed, 10)))
}
