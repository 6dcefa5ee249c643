package trackers

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"

	"exp/experiments/ident"
	"exp/experiments/keep"
	"exp/experiments/store"
)

// put writes a file and returns its path.
func put(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB) *store.DB {
	t.Helper()
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	db, err := store.Open(t.TempDir(), store.Options{Create: true, Clock: func() time.Time { now = now.Add(time.Second); return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// Lines that verl prints: from today's version, from an older one that rounds, with Ray's
// prefix, and other lines in between.
const console = `(TaskRunner pid=71) {'actor_rollout_ref': {'actor': 'step:9'}}
(TaskRunner pid=71) step:0 - val-core/math/acc/mean@4:0.125 - val-aux/num_turns/max:np.int32(2)
Training Progress:   0%|          | 0/3 [00:00<?, ?it/s]
` + "\x1b[36m(TaskRunner pid=71)\x1b[0m" + ` step:1 - actor/entropy:0.5112 - critic/score/mean:np.float64(0.25) - perf/mfu/actor:nan - actor/flag:True
step:2 - actor/entropy:0.489 - critic/score/mean:-1e-05 - x/y:tensor(0.5, device='cuda:0')
step:3 - actor/entropy:inf
`

func TestVerlConsole(t *testing.T) {
	f, err := Read("verl", []string{put(t, t.TempDir(), "train.log", console)})
	if err != nil {
		t.Fatal(err)
	}
	want := []Series{
		{"actor/entropy", []int64{1, 2, 3}, []float64{0.5112, 0.489, math.Inf(1)}},
		{"actor/flag", []int64{1}, []float64{1}},
		{"critic/score/mean", []int64{1, 2}, []float64{0.25, -1e-5}},
		{"perf/mfu/actor", []int64{1}, []float64{math.NaN()}},
		{"val-aux/num_turns/max", []int64{0}, []float64{2}},
		{"val-core/math/acc/mean@4", []int64{0}, []float64{0.125}},
		{"x/y", []int64{2}, []float64{0.5}},
	}
	if diff := cmp.Diff(want, f.Series, cmpopts.EquateNaNs()); diff != "" || f.Name != "train" || len(f.Files) != 1 {
		t.Errorf("name %s, series (-want +got):\n%s", f.Name, diff)
	}
}

// Lines of the file logger, of a resumed run, with Python's NaN.
func TestVerlFileLogger(t *testing.T) {
	text := `{"step":1,"data":{"actor/entropy":0.5,"critic/score/mean":NaN,"text":"NaN"}}
{"step":2,"data":{"actor/entropy":0.4,"training/epoch":0}}
{"step":2,"data":{"actor/entropy":0.3,"a":{"b":[1],"c":-Infinity}}}
`
	f, err := Read("verl", []string{put(t, t.TempDir(), "log.jsonl", text)})
	if err != nil {
		t.Fatal(err)
	}
	want := []Series{
		{"a/c", []int64{2}, []float64{math.Inf(-1)}},
		{"actor/entropy", []int64{1, 2}, []float64{0.5, 0.3}},
		{"critic/score/mean", []int64{1}, []float64{math.NaN()}},
		{"training/epoch", []int64{2}, []float64{0}},
	}
	if diff := cmp.Diff(want, f.Series, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	if len(f.Remarks) != 1 || !strings.HasPrefix(f.Remarks[0], "1 point recorded twice with different values") {
		t.Errorf("remarks %q", f.Remarks)
	}
}

// Of two numbers for one metric of a step the same one counts each time.
func TestVerlNamesTwice(t *testing.T) {
	for range 30 {
		p := newPoints()
		if problem := p.jsonLine([]byte(`{"step": 1, "loss": 2, "a/b": 5, "data": {"loss": 1, "a": {"b": 4}}}`)); problem != "" {
			t.Fatal(problem)
		}
		if got := p.series["loss"][1]; got != 2 {
			t.Fatalf("loss is %v, want 2, of the later name", got)
		}
		if got := p.series["a/b"][1]; got != 4 {
			t.Fatalf("a/b is %v, want 4, of the later name", got)
		}
	}
}

func TestTables(t *testing.T) {
	want := []Series{{"a", []int64{1, 2}, []float64{0.5, 0.25}}, {"b/c", []int64{1}, []float64{3}}}
	for _, tt := range []struct{ from, text string }{
		{"csv", "step,a,b/c,remark\n1,0.5,3,fine\n2,0.25,,\n"},
		{"csv", "\ufeffrun,metric,step,value\nx,a,1,0.5\nx,a,2,0.25\nx,b/c,1,3\n"},
		{"csv", "Wall time,Step,a,b/c\n1700000000.5,1,0.5,3\n1700000001,2,0.25,\n"},
		{"jsonl", "{\"seed\":0,\"metric\":\"a\",\"step\":1,\"value\":0.5}\n{\"metric\":\"a\",\"step\":2,\"value\":0.25}\n{\"metric\":\"b/c\",\"step\":1,\"value\":3}\n"},
		{"jsonl", "{\"step\": 1, \"a\": 0.5, \"b\": {\"c\": 3}, \"note\": \"x\"}\n\n{\"_step\": 2.0, \"a\": 0.25, \"b/c\": null}\n"},
	} {
		f, err := Read(tt.from, []string{put(t, t.TempDir(), "m."+tt.from, tt.text)})
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if diff := cmp.Diff(want, f.Series); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, diff)
		}
	}
}

// A link to a folder is the folder.
func TestReadLink(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "m.csv", "step,a\n1,0.5\n")
	link := filepath.Join(t.TempDir(), "latest")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	f, err := Read("csv", []string{link})
	if err != nil || len(f.Series) != 1 || f.Name != "latest" {
		t.Errorf("%+v, %v", f, err)
	}
}

// Errors name the file, the line and the word.
func TestReadRefuses(t *testing.T) {
	for _, tt := range []struct{ from, name, text, want string }{
		{"verl", "a.log", "nothing\nhere\n", "no line has the metrics of a step"},
		{"verl", "a.log", "", "no line has the metrics of a step"},
		{"verl", "a.log", "x\nstep:1 - a:0.5 - b:many\n", `a.log:2: the value of b is "many"`},
		{"verl", "a.log", "step:1 - a:0.5 - b\n", `no value in "b"`},
		{"verl", "a.log", "step:99999999999999999999 - a:1\n", "too large"},
		{"verl", "a.jsonl", "{\"step\":1,\"data\":{\"a\":1}}\n{\"data\":{}}\n", "a.jsonl:2: it has no step"},
		{"verl", "a.jsonl", "{\"input\":\"x\",\"output\":\"y\",\"step\":1}\n{\"input\":\"x\"}\n", "a.jsonl:2: a completion needs input and output"},
		{"verl", "last.jsonl", "{\"input\":\"x\",\"output\":\"y\"}\n", "neither the line nor the file name gives a step"},
		{"jsonl", "a.jsonl", "{\"step\":1.5,\"a\":1}\n", "step is 1.5, not a step"},
		{"jsonl", "a.jsonl", "[1]\n", "not a JSON object"},
		{"csv", "a.csv", "", "no header line"},
		{"csv", "a.csv", "x,y\n1,2\n", "no column is named step"},
		{"csv", "a.csv", "step,a\none,2\n", `the step is "one"`},
		{"csv", "a.csv", "step,a\n1,2,3\n", "wrong number of fields"},
		{"csv", "a.csv", "run,step,metric,value\nx,1,a,1\ny,1,a,1\n", "several runs, x and y"},
		{"csv", "a.csv", "step,a\n1,text\n", "it contains no metrics"},
		{"tensorboard", "events.out.tfevents.1", "", "record 1 is damaged or not a TensorBoard event"},
		{"tensorboard", "events.out.tfevents.1", "this is something else entirely", "record 1 is damaged or not a TensorBoard event"},
	} {
		_, err := Read(tt.from, []string{put(t, t.TempDir(), tt.name, tt.text)})
		var e *FormatError
		if !errors.As(err, &e) || !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.name) {
			t.Errorf("%s of %q: %v, want %q", tt.from, tt.text, err, tt.want)
		}
	}
	if _, err := Read("verl", []string{filepath.Join(t.TempDir(), "none")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such file: %v", err)
	}
	dir := t.TempDir()
	put(t, dir, "a/events.out.tfevents.1", "")
	put(t, dir, "b/events.out.tfevents.1", "")
	if _, err := Read("tensorboard", []string{dir}); err == nil || !strings.Contains(err.Error(), "2 folders") {
		t.Errorf("two runs in one folder: %v", err)
	}
}

// An event as TensorFlow's own writer makes it, byte by byte: wall time 1.5 (field 1,
// double), step 7 (field 2), summary (field 5) with tag "a" and simple_value 0.5. The
// CRCs are CRC-32C ("123456789" has e3069283, RFC 3720 B.4), masked.
func TestEventBytes(t *testing.T) {
	if c := maskedCRC([]byte("123456789")); c != (0xe3069283>>15|0xe3069283<<17&0xffffffff)+0xa282ead8&0xffffffff {
		t.Errorf("masked CRC %08x", c)
	}
	got := appendEvent(nil, time.UnixMilli(1500), 7, "a", 0.5)
	body, _ := hex.DecodeString("09000000000000f83f" + "1007" + "2a0a" + "0a08" + "0a0161" + "150000003f")
	if n := binary.LittleEndian.Uint64(got); int(n) != len(body) {
		t.Fatalf("a record of %d bytes, want %d", n, len(body))
	}
	if !bytes.Equal(got[12:12+len(body)], body) {
		t.Errorf("event %x\nwant  %x", got[12:12+len(body)], body)
	}
	if binary.LittleEndian.Uint32(got[8:]) != maskedCRC(got[:8]) || binary.LittleEndian.Uint32(got[12+len(body):]) != maskedCRC(body) {
		t.Error("wrong CRCs")
	}
}

// Newer writers put scalars into tensors; images and texts are left out; a file that
// is being written ends anywhere.
func TestEventsRead(t *testing.T) {
	value := func(tag string, tensor []byte) []byte {
		v := appendBytes(appendString(nil, valueTag, tag), valueTensor, tensor)
		return appendRecord(nil, appendBytes(appendVarint(appendDouble(nil, eventWallTime, 2), eventStep, 3), eventSummary, appendBytes(nil, summaryValue, v)))
	}
	half, quarter := []byte{0, 0, 0, 0x3f}, binary.LittleEndian.AppendUint64(nil, math.Float64bits(0.25))
	file := appendEvent(nil, time.UnixMilli(1000), 0, "", 0)
	file = append(file, value("float", appendBytes(appendVarint(nil, tensorType, typeFloat), tensorContent, half))...)
	file = append(file, value("list", appendBytes(appendVarint(nil, tensorType, typeFloat), tensorFloats, half))...)
	file = append(file, value("double", appendBytes(appendVarint(nil, tensorType, typeDouble), tensorContent, quarter))...)
	file = append(file, value("text", appendBytes(appendVarint(nil, tensorType, 7), 8, []byte("words")))...)
	file = append(file, appendEvent(nil, time.UnixMilli(4000), 5, "simple", 0.75)...)
	want := []Series{{"double", []int64{3}, []float64{0.25}}, {"float", []int64{3}, []float64{0.5}}, {"list", []int64{3}, []float64{0.5}}, {"simple", []int64{5}, []float64{0.75}}}
	path := put(t, t.TempDir(), "events.out.tfevents.1", string(file)+"\x10\x00\x00")
	f, err := Read("tensorboard", []string{path})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, f.Series); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	if len(f.Remarks) != 1 || f.Started != time.UnixMilli(2000).UTC() || f.Ended != time.UnixMilli(4000).UTC() {
		t.Errorf("remarks %q, from %v to %v", f.Remarks, f.Started, f.Ended)
	}
	// Any changed bit of a whole file is found.
	for i := range file {
		bad := bytes.Clone(file)
		bad[i] ^= 0x10
		got := newPoints()
		whole, err := got.readEvents("x", bytes.NewReader(bad))
		if err == nil && whole {
			t.Fatalf("a changed byte %d was not found", i)
		}
	}
}

func FuzzEvents(f *testing.F) {
	f.Add(appendEvent(appendEvent(nil, time.UnixMilli(1000), 0, "", 0), time.UnixMilli(1000), 1, "a", 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := newPoints()
		_, _ = p.readEvents("x", bytes.NewReader(b))
		_ = p.event(b) // what no CRC protects
	})
}

// A foreign run: its series and summaries, completions, files; its id is the id of its
// files, so it enters once.
func TestEnter(t *testing.T) {
	dir := t.TempDir()
	log := put(t, dir, "train.log", console)
	for _, step := range []string{"9", "10"} {
		lines := ""
		for _, l := range []string{`"input":"p1","output":"right","gts":"1","score":1.0,"pred":"1"`, `"input":"p1","output":"wrong","gts":"1","score":0.0,"pred":"2"`,
			`"input":"p2","output":"no","gts":"2","score":-1,"acc":false`, `"input":"p2","output":"yes","gts":"2","score":-0.5,"acc":true`} {
			lines += "{" + l + `,"step":` + step + "}\n"
		}
		put(t, dir, "val/"+step+".jsonl", lines)
	}
	read := func(seed int64) *Foreign {
		f, err := Read("verl", []string{log, filepath.Join(dir, "val")})
		if err != nil {
			t.Fatal(err)
		}
		f.Name, f.Seed = "verl-ppo", seed
		return f
	}
	db, ctx := open(t), context.Background()
	run, added, err := read(1).Enter(ctx, db)
	if err != nil || !added {
		t.Fatalf("added %t, %v", added, err)
	}
	if run.Foreign() != "verl" || run.Name != "verl-ppo" || run.Seed != 1 || run.Status != store.Done || run.Steps != 4 || !run.Chain.IsZero() {
		t.Errorf("run %+v", run)
	}
	if len(run.Headline) != 1 || run.Headline[0] != (store.Headline{Name: "pass@1", Value: 0.5}) {
		t.Errorf("headline %+v", run.Headline)
	}
	curves, err := db.Metrics(ctx, run.ID, "actor/entropy", 0, store.AllSteps)
	if err != nil || len(curves) != 1 {
		t.Fatalf("%d curves, %v", len(curves), err)
	}
	c := curves[0]
	if c.N != 3 || c.Det || c.Min != 0.489 || c.ArgMin != 2 || !math.IsInf(c.Max, 1) || c.ArgMax != 3 || c.LastStep != 3 || len(c.Steps) != 3 {
		t.Errorf("curve %+v", c)
	}
	nan, err := db.Metrics(ctx, run.ID, "perf/mfu/actor", 0, store.AllSteps)
	if err != nil || len(nan) != 1 || !math.IsNaN(nan[0].Values[0]) || !math.IsNaN(nan[0].Min) {
		t.Errorf("NaN came back as %+v, %v", nan, err)
	}
	kept, err := db.Samples(ctx, run.ID, store.SampleQuery{Scope: "eval", Label: "val"})
	if err != nil || len(kept) != 4 {
		t.Fatalf("%d samples, %v", len(kept), err)
	}
	for i, want := range []bool{true, false, false, true} {
		if v := kept[i].Verdict; v == nil || !v.Graded || v.Correct != want {
			t.Errorf("sample %d: verdict %+v, want %t", i, v, want)
		}
	}
	packs := db.Blobs.NewPackReader()
	defer packs.Close()
	var text struct{ Prompt, Text string }
	if err := packs.Read(kept[3].Ref, &text); err != nil || text.Prompt != "p2" || text.Text != "yes" {
		t.Errorf("text %+v, %v", text, err)
	}
	if earlier, err := db.Samples(ctx, run.ID, store.SampleQuery{Scope: "val", Step: 9}); err != nil || len(earlier) != 4 {
		t.Errorf("%d samples of step 9, %v", len(earlier), err)
	}
	files, err := db.Artifacts(ctx, run.ID)
	if err != nil || len(files) != 3 {
		t.Fatalf("files %+v, %v", files, err)
	}
	if b, err := db.Blobs.Bytes(files[0].Digest); err != nil || string(b) != console {
		t.Errorf("the log was not kept: %v", err)
	}
	// It has no chain that could be broken, and all its blobs are in use.
	if report, err := keep.Check(ctx, db, keep.CheckOptions{Deep: true}); err != nil || len(report.Findings) > 0 || report.Runs != 1 {
		t.Errorf("check %+v, %v", report, err)
	}
	if plan, err := keep.Sweep(ctx, db, keep.Options{Now: time.Now().Add(2 * keep.Grace), Budget: 0}); err != nil || len(plan.Items) > 0 {
		t.Errorf("sweep %+v, %v", plan, err)
	}
	if again, added, err := read(1).Enter(ctx, db); err != nil || added || again.RID != run.RID {
		t.Errorf("again: %s, added %t, %v", again.RID.Short(), added, err)
	}
	other, added, err := read(2).Enter(ctx, db)
	if err != nil || !added || other.RID == run.RID || other.XID != run.XID {
		t.Errorf("another seed: %+v, added %t, %v", other, added, err)
	}
	if err := db.Check(ctx); err != nil {
		t.Error(err)
	}
	f := read(3)
	if err := os.WriteFile(log, []byte("step:1 - a:1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Enter(ctx, db); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "changed while") {
		t.Errorf("a file that changed: %v", err)
	}
}

// recorded is a store with a run of three steps.
func recorded(t *testing.T) (*store.DB, store.Run) {
	t.Helper()
	db := open(t)
	text := `{"name":"a/b","train":{"steps":3,"modes":["x"]}}`
	run, _, err := db.EnsureRun(context.Background(), store.NewRun{RID: ident.Sum([]byte("r")), XID: ident.Sum([]byte("x")), Name: "a/b", Seed: 2,
		Config: store.Config{Digest: ident.Sum([]byte(text)), JSON: text}})
	if err != nil {
		t.Fatal(err)
	}
	w := db.NewStepWriter(run.ID, 0, nil)
	for i := int64(1); i <= 3; i++ {
		s := store.Step{Det: ident.Det{Step: i, Metrics: map[string]float64{"actor/entropy": 0.5 * float64(i), "val/pass@1": math.NaN()}}, Chain: ident.Sum([]byte{byte(i)})}
		if i == 2 {
			s.Measured = map[string]float64{"timing_s/step": 0.125}
		}
		if err := w.Record(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return db, run
}

// about describes one of the recorded metrics.
func about(metric string) string {
	if metric == "actor/entropy" {
		return "**Policy entropy**"
	}
	return ""
}

// TestWriteDescriptions: TensorBoard finds a tag's description in its first event.
func TestWriteDescriptions(t *testing.T) {
	db, run := recorded(t)
	dir := filepath.Join(t.TempDir(), "tb")
	if _, err := Write(context.Background(), db, []store.Run{run}, "tensorboard", dir, about); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "events.out.tfevents.*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %q, %v", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	// Value.metadata is field 9, its plugin_data field 1 with the plugin_name in field 1, its summary_description
	// field 3.
	metadata := "\x4a\x1f\x0a\x09\x0a\x07scalars\x1a\x12**Policy entropy**"
	if n := bytes.Count(b, []byte(metadata)); n != 1 {
		t.Errorf("the description is there %d times, want once", n)
	}
	if bytes.Index(b, []byte("**Policy")) > bytes.LastIndex(b, []byte("actor/entropy")) {
		t.Error("the description does not come with the first event")
	}
}

// TestWrite: reading an exported file gives every point.
func TestWrite(t *testing.T) {
	db, run := recorded(t)
	want := []Series{{"actor/entropy", []int64{1, 2, 3}, []float64{0.5, 1, 1.5}}, {"timing_s/step", []int64{2}, []float64{0.125}},
		{"val/pass@1", []int64{1, 2, 3}, []float64{math.NaN(), math.NaN(), math.NaN()}}}
	for _, from := range []string{"tensorboard", "csv"} {
		path := filepath.Join(t.TempDir(), "out."+from)
		w, err := Write(context.Background(), db, []store.Run{run}, from, path, about)
		if err != nil || *w != (Written{Runs: 1, Series: 3, Points: 7, Files: 1}) {
			t.Fatalf("%s: %+v, %v", from, w, err)
		}
		f, err := Read(from, []string{path})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, f.Series, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", from, diff)
		}
		if _, err := Write(context.Background(), db, []store.Run{run}, from, path, about); err == nil {
			t.Errorf("%s: what was there was replaced", from)
		}
	}
	path := filepath.Join(t.TempDir(), "out.parquet")
	if _, err := Write(context.Background(), db, []store.Run{run}, "parquet", path, about); err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.ReadFile[point](path)
	if err != nil || len(rows) != 7 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if r := rows[3]; r.Run != run.RID.String() || r.Seed != 2 || r.Metric != "timing_s/step" || r.Step != 2 || r.Value != 0.125 || r.Time.IsZero() {
		t.Errorf("row %+v", r)
	}
}

func TestWriteCSV(t *testing.T) {
	db, run := recorded(t)
	path := filepath.Join(t.TempDir(), "m.csv")
	if _, err := Write(context.Background(), db, []store.Run{run}, "csv", path, about); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil || len(rows) != 8 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	want := []string{run.RID.String(), "a/b", "2", "actor/entropy", "1", "0.5", "2026-03-10T12:00:03.000Z"}
	if diff := cmp.Diff(want[:6], rows[1][:6]); diff != "" || !strings.HasSuffix(rows[1][6], "Z") {
		t.Errorf("row %q (-want +got):\n%s", rows[1], diff)
	}
}

// The database of MLflow's tracking server, as its code reads it.
func TestWriteMLflow(t *testing.T) {
	db, run := recorded(t)
	path := filepath.Join(t.TempDir(), "mlflow.db")
	if _, err := Write(context.Background(), db, []store.Run{run}, "mlflow", path, about); err != nil {
		t.Fatal(err)
	}
	out, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	id := run.RID.String()[:32]
	for query, want := range map[string]string{
		"SELECT version_num FROM alembic_version":                                              mlflowRevision,
		"SELECT name FROM experiments WHERE experiment_id = 1":                                 "a/b " + run.XID.Short(),
		"SELECT status || experiment_id || lifecycle_stage FROM runs":                          "SCHEDULED1active",
		"SELECT name FROM runs WHERE run_uuid = '" + id + "'":                                  "a_b-2-" + run.RID.Short(),
		"SELECT value FROM metrics WHERE key = 'timing_s/step' AND step = 2":                   "0.125",
		"SELECT value || ' ' || is_nan FROM metrics WHERE key = 'val/pass_at_1'":               "0.0 1",
		"SELECT group_concat(step || ' ' || value) FROM metrics WHERE key = 'actor/entropy'":   "1 0.5,2 1.0,3 1.5",
		"SELECT value FROM params WHERE key = 'train.steps'":                                   "3",
		"SELECT value FROM params WHERE key = 'train.modes'":                                   `["x"]`,
		"SELECT value FROM params WHERE key = 'name'":                                          "a/b",
		"SELECT value FROM tags WHERE key = 'exp.run'":                                         run.RID.String(),
		"SELECT count(*) FROM pragma_foreign_key_check":                                        "0",
		"SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'": "6",
	} {
		var got string
		if err := out.QueryRow(query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", query, got, err, want)
		}
	}
}

// MLflow's migrations read a table's CHECK constraints line by line; two on a line, or a closing
// bracket after one, and they write a table that SQLite refuses.
func TestMLflowSchema(t *testing.T) {
	checks := 0
	for line := range strings.Lines(mlflowSchema) {
		if !strings.Contains(line, "CHECK") {
			continue
		}
		checks++
		line = strings.TrimSuffix(strings.TrimSpace(line), ",")
		if !strings.HasPrefix(line, "CONSTRAINT ") || strings.Count(line, "CHECK") > 1 ||
			strings.Count(line, "(") != strings.Count(line, ")") {
			t.Errorf("not a CHECK constraint alone: %s", line)
		}
	}
	if checks != 4 {
		t.Errorf("%d CHECK constraints, want 4", checks)
	}
}

// MLflow upgrades and reads our database, where it is installed.
func TestMLflowReadsOurs(t *testing.T) {
	mlflow, err := exec.LookPath("mlflow")
	if err != nil {
		t.Skip("mlflow (PyPI) is not installed")
	}
	db, run := recorded(t)
	path := filepath.Join(t.TempDir(), "mlflow.db")
	if _, err := Write(context.Background(), db, []store.Run{run}, "mlflow", path, about); err != nil {
		t.Fatal(err)
	}
	list := exec.Command(mlflow, "runs", "list", "--experiment-id", "1")
	list.Env = append(os.Environ(), "MLFLOW_TRACKING_URI=sqlite:///"+path)
	if out, err := list.CombinedOutput(); err != nil || !strings.Contains(string(out), "a_b-2-"+run.RID.Short()) {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestMLflowValue(t *testing.T) {
	for _, c := range []struct {
		v, want float64
		nan     bool
	}{{1.5, 1.5, false}, {math.NaN(), 0, true}, {math.Inf(1), math.MaxFloat64, false}, {math.Inf(-1), -math.MaxFloat64, false}} {
		if got, nan := mlflowValue(c.v); got != c.want || nan != c.nan {
			t.Errorf("%v: %v, %v; want %v, %v", c.v, got, nan, c.want, c.nan)
		}
	}
}

// Two names that MLflow would spell alike keep a key each.
func TestMLflowKeys(t *testing.T) {
	got := mlflowKeys([]string{"loss#1", "loss@1", "loss_1", "loss_at_1", "loss~1", "plain"})
	want := map[string]string{"loss_1": "loss_1", "loss_at_1": "loss_at_1", "plain": "plain", "loss#1": "loss_1_2",
		"loss@1": "loss_at_1_2", "loss~1": "loss_1_3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}
