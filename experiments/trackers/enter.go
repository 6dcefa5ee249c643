package trackers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/experiments/store"
)

// RID returns the run's id, from its files, framework, name and seed:
//
//	H("exp/foreign/run/1", {from, name, seed, files: [[name, sha256] by name]})
func (f *Foreign) RID() ident.Digest {
	files := [][]any{}
	for _, s := range f.Files {
		files = append(files, []any{s.Name, s.SHA256})
	}
	slices.SortFunc(files, func(a, b []any) int { return strings.Compare(a[0].(string), b[0].(string)) })
	return digest("exp/foreign/run/1", map[string]any{"from": f.From, "name": f.Name, "seed": f.Seed, "files": files})
}

// XID returns the experiment id, shared by all seeds of one name and framework.
func (f *Foreign) XID() ident.Digest {
	return digest("exp/foreign/experiment/1", map[string]any{"from": f.From, "name": f.Name})
}

// digest is ident.Hash for values that always encode, since Enter checks the names.
func digest(tag string, v any) ident.Digest {
	d, err := ident.Hash(tag, v)
	if err != nil {
		panic("trackers: " + err.Error())
	}
	return d
}

// Enter records the run in a store, whole or not at all. If a run of the same files
// exists, it does nothing and added is false.
func (f *Foreign) Enter(ctx context.Context, db *store.DB) (run store.Run, added bool, err error) {
	for _, text := range append([]string{f.Name, f.Algo, f.Task, f.Model}, fileNames(f.Files)...) {
		if _, err := ident.Encode(text); err != nil {
			return run, false, &FormatError{Path: text, Msg: "the name is not UTF-8"}
		}
	}
	e := &entry{Foreign: f, ctx: ctx, db: db, now: time.Now().UnixMilli(), rid: f.RID()}
	if err := e.storeFiles(); err != nil {
		return run, false, err
	}
	for i := range f.Dumps {
		if err := e.storeDump(&f.Dumps[i]); err != nil {
			return run, false, err
		}
	}
	e.addRun()
	e.addSeries()
	done, err := db.ImportRows(ctx, e.next)
	if err != nil {
		return run, false, err
	}
	run, err = db.Run(ctx, e.rid)
	return run, len(done.Added) == 1, err
}

func fileNames(files []SourceFile) (names []string) {
	for _, s := range files {
		names = append(names, s.Name)
	}
	return names
}

// entry builds the rows of a run in the form of store.ExportRows.
type entry struct {
	*Foreign
	ctx    context.Context
	db     *store.DB
	now    int64 // milliseconds
	rid    ident.Digest
	tables []table
	stages int64
	suites int64
	kept   int64 // samples
	// of the newest dump
	headline *float64
}

// table holds the rows of a table; columns is "name TYPE, name TYPE".
type table struct {
	name, columns string
	rows          [][]any
}

// add adds a row to a table, creating it if it is new.
func (e *entry) add(name, columns string, row ...any) {
	for i, v := range row {
		switch v := v.(type) {
		case ident.Digest:
			row[i] = v[:]
		case int:
			row[i] = int64(v)
		case float64:
			if math.IsNaN(v) {
				row[i] = nil
			}
		}
	}
	i := slices.IndexFunc(e.tables, func(t table) bool { return t.name == name })
	if i < 0 {
		i = len(e.tables)
		e.tables = append(e.tables, table{name: name, columns: columns})
	}
	e.tables[i].rows = append(e.tables[i].rows, row)
}

// order is the order of tables in a bundle.
var order = []string{"blobs", "configs", "suites", "items", "scorers", "runs", "stages", "stage_io", "artifacts",
	"series", "metrics", "evals", "samples", "verdicts"}

// next returns the tables in their order.
func (e *entry) next() (store.PortableRows, error) {
	best := -1
	for i := range e.tables {
		if best < 0 || slices.Index(order, e.tables[i].name) < slices.Index(order, e.tables[best].name) {
			best = i
		}
	}
	if best < 0 {
		return store.PortableRows{}, io.EOF
	}
	t := e.tables[best]
	e.tables = slices.Delete(e.tables, best, best+1)
	out := store.PortableRows{Table: t.name}
	for c := range strings.SplitSeq(t.columns, ", ") {
		name, kind, _ := strings.Cut(c, " ")
		out.Columns = append(out.Columns, store.Column{Name: name, Type: kind})
	}
	out.Next = func() ([]any, error) {
		if len(t.rows) == 0 {
			return nil, io.EOF
		}
		row := t.rows[0]
		t.rows = t.rows[1:]
		return row, e.ctx.Err()
	}
	return out, nil
}

func (e *entry) addBlob(d ident.Digest, size int64, kind string) {
	for _, t := range e.tables {
		if t.name == "blobs" &&
			slices.ContainsFunc(t.rows, func(row []any) bool { return ident.Digest(row[0].([]byte)) == d }) {
			return
		}
	}
	e.add("blobs", "digest BLOB, size INTEGER, kind TEXT, created INTEGER", d, size, kind, e.now)
}

// storeFiles stores the files unchanged. A file that changed since it was read is an
// error.
func (e *entry) storeFiles() error {
	for _, s := range e.Files {
		d, size, err := e.db.Blobs.PutFile(s.Path)
		if err != nil {
			return err
		}
		if d != s.SHA256 {
			return &FormatError{Path: s.Path, Msg: "the file changed while being read",
				Help: "import it after its run has ended, or import a copy"}
		}
		e.addBlob(d, size, "foreign")
	}
	stage := e.addStage("import", "", 0)
	for _, s := range e.Files {
		e.add("stage_io", ioColumns, stage, "in", s.Name, s.SHA256, s.Size)
		e.add("artifacts", "run INTEGER, stage INTEGER, name TEXT, media TEXT, digest BLOB", 1, stage,
			"source/"+s.Name, "application/octet-stream", s.SHA256)
	}
	return nil
}

const ioColumns = "stage INTEGER, dir TEXT, role TEXT, digest BLOB, size INTEGER"

// addStage adds a finished stage and returns its row number.
func (e *entry) addStage(kind, label string, n int) int64 {
	sid := digest("exp/foreign/stage/1", map[string]any{"run": e.rid, "kind": kind, "label": label})
	result, _ := json.Marshal(map[string]any{"from": e.From, "samples": n})
	e.add("stages", "sid BLOB, run INTEGER, kind TEXT, label TEXT, status TEXT, params TEXT, numerics TEXT, seed "+
		"TEXT, started INTEGER, ended INTEGER, result TEXT",
		sid, 1, kind, label, string(store.Done), "{}", store.ForeignNumerics(e.From), "", e.now, e.now, string(result))
	e.stages++
	return e.stages
}

// addRun adds the run and its configuration, which names its origin.
func (e *entry) addRun() {
	// How two foreign runs differ is unknown: a comparison only shows that their files
	// differ.
	conf, _ := json.Marshal(map[string]any{"name": e.Name, "foreign": map[string]any{"from": e.From,
		"digest": e.rid.Short()},
		"compare": map[string]any{"vary": []string{"foreign"}, "min_seeds": 3}})
	source := fmt.Sprintf("# a run of %s, imported; it has no configuration of ours\nname: %q\n", e.From, e.Name)
	config := ConfigDigest(conf)
	e.add("configs", "digest BLOB, json TEXT, source TEXT, origins TEXT", config, string(conf), source, "{}")
	all := steps(e.Series)
	started, ended, wall := any(nil), any(nil), 0.0
	if !e.Started.IsZero() {
		started, ended, wall = e.Started.UnixMilli(), e.Ended.UnixMilli(), e.Ended.Sub(e.Started).Seconds()
	}
	headline, value := "", any(nil)
	if e.headline != nil {
		headline, value = "pass@1", *e.headline
	}
	unknown := func(s string) string {
		if s == "" {
			return "unknown"
		}
		return s
	}
	e.add("runs", "rid BLOB, xid BLOB, name TEXT, task TEXT, algo TEXT, model TEXT, seed INTEGER, numerics TEXT, "+
		"status TEXT, created INTEGER, "+
		"started INTEGER, ended INTEGER, steps INTEGER, steps_total INTEGER, wall_s REAL, config BLOB, headline "+
		"TEXT, h1 REAL",
		e.rid, e.XID(), e.Name, unknown(e.Task), unknown(e.Algo), unknown(e.Model), e.Seed,
		store.ForeignNumerics(e.From), string(store.Done), e.now,
		started, ended, len(all), len(all), wall, config, headline, value)
}

// ConfigDigest returns the digest of a run's configuration as JSON.
func ConfigDigest(conf []byte) ident.Digest {
	return ident.Sum(append([]byte("exp/foreign/config/1"), conf...))
}

// addSeries adds the series, with summaries as in store, and their points.
func (e *entry) addSeries() {
	for i, s := range e.Series {
		var least, most, last any
		var atLeast, atMost any
		for k, v := range s.Values {
			if math.IsNaN(v) {
				continue
			}
			if least == nil || v < least.(float64) {
				least, atLeast = v, s.Steps[k]
			}
			if most == nil || v > most.(float64) {
				most, atMost = v, s.Steps[k]
			}
		}
		n := len(s.Steps)
		if v := s.Values[n-1]; !math.IsNaN(v) {
			last = v
		}
		e.add("series", "run INTEGER, name TEXT, unit TEXT, det INTEGER, n INTEGER, last REAL, last_step INTEGER, "+
			"min REAL, max REAL, argmin INTEGER, argmax INTEGER",
			1, s.Name, "", 0, n, last, s.Steps[n-1], least, most, atLeast, atMost)
		for k, v := range s.Values {
			e.add("metrics", "run INTEGER, step INTEGER, series INTEGER, value REAL", 1, s.Steps[k], i+1, v)
		}
	}
}

// storeDump adds the completions of a folder: the last step as an evaluation with its
// problems, earlier steps as online evaluations.
func (e *entry) storeDump(d *Dump) error {
	pack := e.db.Blobs.NewPackWriter()
	newest := int64(math.MinInt64)
	for _, c := range d.Completions {
		if err := pack.Add(map[string]any{"prompt": c.Prompt, "text": c.Text}); err != nil {
			return err
		}
		newest = max(newest, c.Step)
	}
	refs, packs, err := pack.Close()
	if err != nil {
		return err
	}
	for _, p := range packs {
		e.addBlob(p.Digest, p.Size, "samples")
	}
	gen := e.addStage("eval.gen", d.Name, len(d.Completions))
	scorer := "reward of " + e.From
	if len(e.scorers()) == 0 {
		e.add("scorers", "digest BLOB, name TEXT", digest("exp/foreign/scorer/1", e.From), scorer)
	}
	for i, c := range d.Completions {
		e.addSample(gen, newest, c, refs[i])
	}
	return e.addEvaluation(d, gen, newest)
}

func (e *entry) scorers() [][]any {
	for _, t := range e.tables {
		if t.name == "scorers" {
			return t.rows
		}
	}
	return nil
}

func (e *entry) addSample(gen, newest int64, c Completion, ref blob.Ref) {
	scope, step := "val", c.Step
	if c.Step == newest {
		scope, step = "eval", 0
	}
	e.add("samples", "stage INTEGER, scope TEXT, step INTEGER, item TEXT, k INTEGER, prompt_tokens INTEGER, "+
		"out_tokens INTEGER, finish TEXT, reward REAL, "+
		"pack BLOB, off INTEGER, len INTEGER", gen, scope, step, c.Problem, c.K, 0, 0, "unknown", c.Score, ref.Pack,
		ref.Off, ref.Len)
	e.kept++
	correct := int64(0)
	if c.Correct {
		correct = 1
	}
	reason := ""
	if !c.Correct && c.Want != "" {
		reason = "wanted " + c.Want
	}
	e.add("verdicts", "sample INTEGER, scorer INTEGER, correct INTEGER, reward REAL, answer TEXT, reason TEXT", e.kept,
		1, correct, c.Score, c.Answer, reason)
}

// itemScore is a problem in a scores blob (eval.Item), with the fields known from a dump.
type itemScore struct {
	Problem string  `json:"problem"`
	Samples int     `json:"samples"`
	Graded  int     `json:"n"`
	Correct int     `json:"c"`
	Reward  float64 `json:"reward"`
}

// addEvaluation scores the completions of the newest step. Runs with dumps of the same
// problems share the suite and can be compared problem by problem.
func (e *entry) addEvaluation(d *Dump, gen, newest int64) error {
	var items []itemScore
	at := map[string]int{}
	for _, c := range d.Completions {
		if c.Step != newest {
			continue
		}
		i, ok := at[c.Problem]
		if !ok {
			i = len(items)
			at[c.Problem] = i
			items = append(items, itemScore{Problem: c.Problem})
		}
		items[i].Samples++
		items[i].Graded++
		if !math.IsNaN(c.Score) {
			items[i].Reward += c.Score
		}
		if c.Correct {
			items[i].Correct++
		}
	}
	slices.SortFunc(items, func(a, b itemScore) int { return strings.Compare(a.Problem, b.Problem) })
	ids, mean, least := []string{}, 0.0, math.MaxInt
	for _, it := range items {
		ids = append(ids, it.Problem)
		mean += float64(it.Correct) / float64(it.Graded) / float64(len(items))
		least = min(least, it.Samples)
	}
	scores,
		err := json.Marshal(map[string]any{"items": items,
		"metrics": []map[string]any{{"name": "pass@1", "value": mean}}})
	if err != nil {
		return err
	}
	blobOf, err := e.db.Blobs.PutBytes(scores)
	if err != nil {
		return err
	}
	e.addBlob(blobOf, int64(len(scores)), "scores")
	suite := e.From + "/" + d.Name
	e.suites++
	e.add("suites", "digest BLOB, name TEXT, version TEXT, scorer TEXT, license TEXT, n_items INTEGER",
		digest("exp/foreign/suite/1", map[string]any{"name": suite, "items": ids}), suite, "", "reward of "+e.From,
		"", len(items))
	for _, id := range ids {
		e.add("items", "suite INTEGER, item TEXT, cluster TEXT, difficulty REAL", e.suites, id, "", nil)
	}
	score := e.addStage("eval.score", d.Name, len(items))
	e.add("stage_io", ioColumns, score, "out", "scores", blobOf, len(scores))
	e.add("evals", "run INTEGER, stage_gen INTEGER, stage_score INTEGER, suite INTEGER, protocol BLOB, n INTEGER, "+
		"metric TEXT, value REAL, n_items INTEGER, n_clusters INTEGER, infra_errors INTEGER",
		1, gen, score, e.suites, digest("exp/foreign/protocol/1", e.From), least, "pass@1", mean, len(items),
		len(items), 0)
	e.headline = &mean
	return nil
}
