package trackers

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"exp/experiments/store"
)

// mlflowRevision is the revision of mlflowSchema among MLflow's migrations: the first that has
// steps and marks NaN. When MLflow opens a database without one of its later tables, it upgrades
// it from its revision (and computes latest_metrics), so old and new versions read ours.
const mlflowRevision = "181f10493468"

// mlflowSchema creates the tables of mlflowRevision. Migrations alter the constraints by name and
// find CHECK constraints line by line: each stands on a line, and so does the closing bracket.
const mlflowSchema = `
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE experiments (experiment_id INTEGER NOT NULL, name VARCHAR(256) NOT NULL UNIQUE,
	artifact_location VARCHAR(256), lifecycle_stage VARCHAR(32),
	CONSTRAINT experiment_pk PRIMARY KEY (experiment_id),
	CONSTRAINT experiments_lifecycle_stage CHECK (lifecycle_stage IN ('active', 'deleted'))
);
CREATE TABLE runs (run_uuid VARCHAR(32) NOT NULL, name VARCHAR(250), source_type VARCHAR(20), source_name VARCHAR(500),
	entry_point_name VARCHAR(50), user_id VARCHAR(256), status VARCHAR(20), start_time BIGINT, end_time BIGINT,
	source_version VARCHAR(50), lifecycle_stage VARCHAR(20), artifact_uri VARCHAR(200),
	experiment_id INTEGER REFERENCES experiments (experiment_id),
	CONSTRAINT run_pk PRIMARY KEY (run_uuid),
	CONSTRAINT source_type CHECK (source_type IN ('NOTEBOOK', 'JOB', 'LOCAL', 'UNKNOWN', 'PROJECT')),
	CONSTRAINT status CHECK (status IN ('SCHEDULED', 'FAILED', 'FINISHED', 'RUNNING', 'KILLED')),
	CONSTRAINT runs_lifecycle_stage CHECK (lifecycle_stage IN ('active', 'deleted'))
);
CREATE TABLE metrics (key VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT NOT NULL,
	run_uuid VARCHAR(32) NOT NULL REFERENCES runs (run_uuid),
	step BIGINT DEFAULT '0' NOT NULL, is_nan BOOLEAN DEFAULT '0' NOT NULL,
	CONSTRAINT metric_pk PRIMARY KEY (key, timestamp, step, run_uuid, value, is_nan)
);
CREATE TABLE params (key VARCHAR(250) NOT NULL, value VARCHAR(250) NOT NULL,
	run_uuid VARCHAR(32) NOT NULL REFERENCES runs (run_uuid),
	CONSTRAINT param_pk PRIMARY KEY (key, run_uuid)
);
CREATE TABLE tags (key VARCHAR(250) NOT NULL, value VARCHAR(250),
	run_uuid VARCHAR(32) NOT NULL REFERENCES runs (run_uuid),
	CONSTRAINT tag_pk PRIMARY KEY (key, run_uuid)
);
`

// mlflowValueLength is the longest value of a parameter, in letters.
const mlflowValueLength = 8000

// mlflow writes the database of a tracking server (--backend-store-uri sqlite:///FILE): an
// experiment for each xid, each run with its metrics, its configuration as parameters, and
// its identity as tags. In keys "@" becomes "_at_", as verl does it.
func (w *writer) mlflow(path string) error {
	db, err := store.NewForeign(path)
	if err != nil {
		return err
	}
	defer db.Close()
	w.done.Files++
	if _, err := db.ExecContext(w.ctx, mlflowSchema); err != nil {
		return fmt.Errorf("mlflow: %w", err)
	}
	tx, err := db.BeginTx(w.ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	m := &mlflowDB{writer: w, tx: tx, prepared: map[string]*sql.Stmt{}}
	if err := m.runs(); err != nil {
		return fmt.Errorf("mlflow: %w", err)
	}
	return errors.Join(tx.Commit(), db.Close())
}

// mlflowDB is an MLflow database being written.
type mlflowDB struct {
	*writer
	tx       *sql.Tx
	prepared map[string]*sql.Stmt
}

// insert adds a row to a table.
func (m *mlflowDB) insert(table, columns string, values ...any) error {
	s := m.prepared[table]
	if s == nil {
		marks := strings.TrimPrefix(strings.Repeat(",?", len(values)), ",")
		var err error
		s, err = m.tx.PrepareContext(m.ctx, "INSERT INTO "+table+" ("+columns+") VALUES ("+marks+")")
		if err != nil {
			return err
		}
		m.prepared[table] = s
	}
	_, err := s.ExecContext(m.ctx, values...)
	return err
}

func (m *mlflowDB) runs() error {
	if err := errors.Join(m.insert("alembic_version", "version_num", mlflowRevision),
		m.experiment(0, "Default")); err != nil {
		return err
	}
	var experiments []string
	for _, r := range m.writer.runs {
		xid := r.XID.String()
		id := slices.Index(experiments, xid) + 1
		if id == 0 {
			experiments = append(experiments, xid)
			id = len(experiments)
			if err := m.experiment(id, r.Name+" "+r.XID.Short()); err != nil {
				return err
			}
		}
		if err := m.run(id, r); err != nil {
			return err
		}
	}
	return nil
}

func (m *mlflowDB) experiment(id int, name string) error {
	return m.insert("experiments", "experiment_id, name, artifact_location, lifecycle_stage",
		id, name, "mlruns/"+strconv.Itoa(id), "active")
}

// mlflowStatus is a run's status in MLflow's words.
func mlflowStatus(s store.Status) string {
	switch s {
	case store.Done:
		return "FINISHED"
	case store.Failed:
		return "FAILED"
	case store.Interrupted, store.Stopped:
		return "KILLED"
	case store.Pending:
		return "SCHEDULED"
	}
	return "RUNNING"
}

func (m *mlflowDB) run(experiment int, r store.Run) error {
	id := r.RID.String()[:32]
	start, end := r.Started, any(nil)
	if start.IsZero() {
		start = r.Created
	}
	if !r.Ended.IsZero() {
		end = r.Ended.UnixMilli()
	}
	err := m.insert("runs", "run_uuid, name, source_type, source_name, entry_point_name, user_id, status, "+
		"start_time, end_time, source_version, lifecycle_stage, artifact_uri, experiment_id", id, folder(r), "LOCAL",
		"exp", "", "exp", mlflowStatus(r.Status), start.UnixMilli(), end, "", "active",
		fmt.Sprintf("mlruns/%d/%s/artifacts", experiment, id), experiment)
	if err != nil {
		return err
	}
	curves, at, err := m.curves(r)
	if err != nil {
		return err
	}
	var names []string
	for _, c := range curves {
		names = append(names, c.Name)
	}
	keys := mlflowKeys(names)
	for _, c := range curves {
		key := keys[c.Name]
		for i, step := range c.Steps {
			value, nan := mlflowValue(c.Values[i])
			if err := m.insert("metrics", "key, value, timestamp, run_uuid, step, is_nan",
				key, value, at(step).UnixMilli(), id, step, nan); err != nil {
				return err
			}
		}
	}
	return errors.Join(m.params(id, r), m.insert("tags", "key, value, run_uuid", "mlflow.runName", folder(r), id),
		m.insert("tags", "", "mlflow.source.type", "LOCAL", id), m.insert("tags", "", "exp.run", r.RID.String(), id),
		m.insert("tags", "", "exp.seed", strconv.FormatInt(r.Seed, 10), id))
}

// mlflowKey replaces the letters that MLflow refuses in keys.
func mlflowKey(name string) string {
	return notInNames.ReplaceAllString(strings.ReplaceAll(name, "@", "_at_"), "_")
}

// mlflowKeys gives each name a different key. A name that MLflow accepts stays unchanged;
// another whose key is taken gets a number: loss_at_1_2.
func mlflowKeys(names []string) map[string]string {
	keys, taken := map[string]string{}, map[string]bool{}
	for _, name := range names {
		if mlflowKey(name) == name {
			keys[name], taken[name] = name, true
		}
	}
	for _, name := range names {
		if _, done := keys[name]; done {
			continue
		}
		key := mlflowKey(name)
		for n := 2; taken[key]; n++ {
			key = mlflowKey(name) + "_" + strconv.Itoa(n)
		}
		keys[name], taken[key] = key, true
	}
	return keys
}

// mlflowValue is a value as MLflow stores it: NaN is a mark, and the infinities are the
// largest numbers.
func mlflowValue(v float64) (float64, bool) {
	if math.IsNaN(v) {
		return 0, true
	}
	return max(-math.MaxFloat64, min(math.MaxFloat64, v)), false
}

// params writes the configuration by dotted path.
func (m *mlflowDB) params(id string, r store.Run) error {
	conf, err := m.db.Config(m.ctx, r.Config)
	if err != nil {
		return err
	}
	flat, err := flatten(conf.JSON)
	if err != nil {
		return fmt.Errorf("configuration of run %s: %w", r.RID.Short(), err)
	}
	paths := slices.Sorted(maps.Keys(flat))
	keys := mlflowKeys(paths)
	for _, path := range paths {
		text := []rune(flat[path])
		text = text[:min(len(text), mlflowValueLength)]
		if err := m.insert("params", "key, value, run_uuid", keys[path], string(text), id); err != nil {
			return err
		}
	}
	return nil
}

// flatten returns the values of nested JSON objects by dotted path: text unquoted, all else
// as JSON.
func flatten(text string) (map[string]string, error) {
	var tree map[string]any
	if err := json.Unmarshal([]byte(text), &tree); err != nil {
		return nil, err
	}
	flat := map[string]string{}
	var walk func(path string, v any) error
	walk = func(path string, v any) error {
		switch v := v.(type) {
		case map[string]any:
			for name, inner := range v {
				if err := walk(path+"."+name, inner); err != nil {
					return err
				}
			}
			return nil
		case string:
			flat[strings.TrimPrefix(path, ".")] = v
			return nil
		}
		b, err := json.Marshal(v)
		flat[strings.TrimPrefix(path, ".")] = string(b)
		return err
	}
	return flat, walk("", tree)
}
