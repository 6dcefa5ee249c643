package bundle

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/experiments/store"
)

func write(t testing.TB, db *store.DB, o Options, runs ...store.Run) (string, *Manifest) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runs.tar")
	m, err := Write(context.Background(), db, path, runs, o)
	if err != nil {
		t.Fatal(err)
	}
	return path, m
}

func load(t testing.TB, path string, db *store.DB) (*store.Imported, error) {
	t.Helper()
	b, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return b.Import(context.Background(), db, nil)
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRoundTrip(t *testing.T) {
	from, b := record(t, t.TempDir())
	path, m := write(t, from, Options{}, b)
	if len(m.Runs) != 2 || m.Runs[0].Name != "a" || m.Runs[0].Chosen || !m.Runs[1].Chosen {
		t.Errorf("runs %+v, want a, which b is made from, and b", m.Runs)
	}
	to := open(t, t.TempDir())
	// Numbers of rows differ here.
	other := maker{t, to}
	other.steps(other.run("other", 0), 2, 1)
	done, err := load(t, path, to)
	if err != nil || len(done.Added) != 2 || len(done.Present) != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	same(t, from, to, b.RID)
	if err := to.Check(context.Background()); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"ckpt/train-1/step-00000002/actor.safetensors", "model/model.safetensors"} {
		if !bytes.Equal(read(t, filepath.Join(from.RunDir(b.RID), name)), read(t, filepath.Join(to.RunDir(b.RID), name))) {
			t.Errorf("%s is not the same", name)
		}
	}
	if _, err := os.Stat(filepath.Join(to.RunDir(b.RID), "model.partial")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("what was half-written came along")
	}
	mine, err := to.Run(context.Background(), b.RID)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := write(t, to, Options{}, mine)
	if !bytes.Equal(read(t, path), read(t, again)) {
		t.Error("exported again, it is another file")
	}
}

// same compares all that the store says of a run.
func same(t *testing.T, from, to *store.DB, rid ident.Digest) {
	t.Helper()
	ctx := context.Background()
	both := [2][]any{}
	for i, db := range []*store.DB{from, to} {
		r, err := db.Run(ctx, rid)
		if err != nil {
			t.Fatal(err)
		}
		add := func(v any, err error) {
			if err != nil {
				t.Fatal(err)
			}
			both[i] = append(both[i], v)
		}
		add(r, nil)
		add(db.Config(ctx, r.Config))
		add(db.Source(ctx, r.Code))
		add(db.Attempts(ctx, r.ID))
		add(db.Stages(ctx, r.ID))
		add(db.Steps(ctx, r.ID, 0, 100))
		add(db.Metrics(ctx, r.ID, "", 0, store.AllSteps))
		add(db.Samples(ctx, r.ID, store.SampleQuery{}))
		add(db.Evals(ctx, r.ID))
		add(db.Artifacts(ctx, r.ID))
		add(db.Checkpoints(ctx, r.ID))
		add(db.Events(ctx, r.ID, 0))
		add(db.Tags(ctx, r.ID))
		add(db.Notes(ctx, r.ID))
	}
	numbers := cmp.FilterPath(func(p cmp.Path) bool {
		f, ok := p.Last().(cmp.StructField)
		switch {
		case !ok:
			return false
		case p.Last().Type().Kind().String() != "int64":
			return false
		}
		switch f.Name() {
		case "ID", "Run", "Stage", "Home", "ReusedFrom", "Attempt", "Parent", "StageGen", "StageScore", "Suite", "Sample":
			return true
		}
		return false
	}, cmp.Comparer(func(a, b int64) bool { return (a == 0) == (b == 0) }))
	if diff := cmp.Diff(both[0], both[1], numbers, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("the record is not the same (-from +to):\n%s", diff)
	}
}

func TestImportTwice(t *testing.T) {
	from, b := record(t, t.TempDir())
	path, _ := write(t, from, Options{}, b)
	dir := t.TempDir()
	to := open(t, dir)
	if _, err := load(t, path, to); err != nil {
		t.Fatal(err)
	}
	before := listing(t, dir)
	first, _ := write(t, to, Options{}, b1(t, to, b.RID))
	done, err := load(t, path, to)
	if err != nil || len(done.Added) != 0 || len(done.Present) != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	if p := done.Present[1]; p.RID != b.RID || p.Steps != 3 || p.Theirs != 3 || p.Restored {
		t.Errorf("%+v", p)
	}
	second, _ := write(t, to, Options{}, b1(t, to, b.RID))
	if !bytes.Equal(read(t, first), read(t, second)) || cmp.Diff(before, listing(t, dir)) != "" {
		t.Errorf("the second import changed something: %s", cmp.Diff(before, listing(t, dir)))
	}
	// A run that was deleted comes back.
	if err := to.DeleteRun(context.Background(), b1(t, to, b.RID).ID); err != nil {
		t.Fatal(err)
	}
	if done, err = load(t, path, to); err != nil || !done.Present[1].Restored {
		t.Errorf("%+v, %v", done, err)
	}
}

// Blobs that are there already are young again: gc leaves them alone until the rows are there.
func TestImportKeepsBlobs(t *testing.T) {
	from, b := record(t, t.TempDir())
	path, m := write(t, from, Options{}, b)
	to := open(t, t.TempDir())
	now := time.Now()
	old := now.Add(-2 * time.Hour)
	for _, d := range m.Blobs {
		content, err := from.Blobs.Bytes(d.SHA256)
		if err == nil {
			_, err = to.Blobs.PutBytes(content)
		}
		if err := errors.Join(err, os.Chtimes(to.Blobs.Path(d.SHA256), old, old)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := load(t, path, to); err != nil {
		t.Fatal(err)
	}
	for _, d := range m.Blobs {
		if gone, err := to.Blobs.Remove(d.SHA256, now.Add(-time.Hour)); gone || err != nil {
			t.Errorf("blob %s: removed %v, %v", d.SHA256.Short(), gone, err)
		}
	}
}

func b1(t *testing.T, db *store.DB, rid ident.Digest) store.Run {
	t.Helper()
	r, err := db.Run(context.Background(), rid)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// listing is the files of a store with their sizes, without the database's own.
func listing(t testing.TB, dir string) map[string]int64 {
	t.Helper()
	m := map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), "exp.db") {
			return err
		}
		info, err := e.Info()
		rel, _ := filepath.Rel(dir, path)
		m[rel] = info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A stage that was executed in both stores is one original and one repetition.
func TestImportOfSharedWork(t *testing.T) {
	from, b := record(t, t.TempDir())
	path, _ := write(t, from, Options{}, b)
	to := open(t, t.TempDir())
	m := maker{t, to}
	mine := m.run("mine", 0)
	st := m.stage(mine, "init", "", []store.IO{m.blob("weights", "weights", "initial weights")}, nil)
	if _, err := load(t, path, to); err != nil {
		t.Fatal(err)
	}
	all, err := to.StagesBySID(context.Background(), st.SID)
	if err != nil || len(all) != 3 {
		t.Fatalf("%d stages, %v", len(all), err)
	}
	if all[0].Status != store.Done || all[1].Status != store.Repeated || all[2].Status != store.Cached || all[1].Home != st.ID || all[2].ReusedFrom != st.ID {
		t.Errorf("%+v", all)
	}
	if err := to.Check(context.Background()); err != nil {
		t.Error(err)
	}
}

// The same work with another outcome, or a run with other steps, is a divergence,
// and nothing is added.
func TestImportDiverges(t *testing.T) {
	from, b := record(t, t.TempDir())
	path, _ := write(t, from, Options{}, b)
	for _, tt := range []struct {
		name  string
		spoil func(m maker)
		field string
	}{
		{"stage", func(m maker) {
			r := m.run("mine", 0)
			out := []store.IO{m.blob("weights", "weights", "initial weights")}
			s, err := m.db.BeginStage(context.Background(), store.Stage{SID: digestOf("sid %s %s %v", "init", "", out), Run: r.ID, Kind: "init"})
			m.must(err)
			m.must(m.db.FinishStage(context.Background(), s.ID, []store.IO{m.blob("weights", "weights", "other weights")}, store.StageResult{}, nil))
		}, "output weights"},
		{"step", func(m maker) { m.steps(m.run("a", 0), 1, 0.75) }, "chain"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			to := open(t, dir)
			tt.spoil(maker{t, to})
			before, err := to.Runs(context.Background(), store.RunQuery{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = load(t, path, to)
			var d *store.DivergenceError
			if !errors.As(err, &d) || d.Field != tt.field {
				t.Fatalf("error %v, want a divergence in %s", err, tt.field)
			}
			after, err := to.Runs(context.Background(), store.RunQuery{})
			if err != nil || cmp.Diff(before, after) != "" {
				t.Errorf("runs changed: %v", err)
			}
			if _, err := os.Stat(filepath.Join(to.RunDir(b.RID), "model")); !errors.Is(err, fs.ErrNotExist) {
				t.Error("files of the run are there")
			}
		})
	}
}

func TestLeavingOut(t *testing.T) {
	from, b := record(t, t.TempDir())
	for _, folder := range WeightFolders() {
		path := filepath.Join(from.RunDir(b.RID), folder, "more.safetensors")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte("more weights"), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	path, m := write(t, from, Options{NoWeights: true, NoTexts: true}, b)
	if diff := cmp.Diff([]string{LeftWeights, LeftTexts}, m.LeftOut); diff != "" {
		t.Error(diff)
	}
	whole := read(t, path)
	for _, text := range []string{"weights of b", "initial weights", "moments", "completions of b", "more weights", "image of b"} {
		if bytes.Contains(whole, []byte(text)) {
			t.Errorf("%q is in it", text)
		}
	}
	to := open(t, t.TempDir())
	if _, err := load(t, path, to); err != nil {
		t.Fatal(err)
	}
	r := b1(t, to, b.RID)
	samples, err := to.Samples(context.Background(), r.ID, store.SampleQuery{})
	if err != nil || len(samples) != 3 || samples[0].Verdict == nil || !samples[0].Ref.Pack.IsZero() {
		t.Errorf("samples %+v, %v", samples, err)
	}
	stages, err := to.Stages(context.Background(), r.ID)
	if err != nil || stages[1].Outputs[0].Size != 0 || stages[1].Outputs[0].Digest != digestOf("weights of b") {
		t.Errorf("stages %+v, %v", stages, err)
	}
	if hit, err := to.Hit(context.Background(), stages[1].SID); err != nil || hit != nil {
		t.Errorf("a stage without its weights is a hit: %v, %v", hit, err)
	}
	digits := digestOf("image of b").String()[:8]
	if im, err := to.FindImage(context.Background(), r.ID, digits); !im.Digest.IsZero() || err != nil {
		t.Errorf("image %+v, %v", im, err)
	}
	path, _ = write(t, from, Options{NoWeights: true}, b)
	if _, err := load(t, path, to); err != nil { // brings the texts
		t.Fatal(err)
	}
	if im, err := to.FindImage(context.Background(), r.ID, digits); im.Digest != digestOf("image of b") || err != nil {
		t.Errorf("image %+v, %v", im, err)
	}
}

// A bundle with any bit changed, cut anywhere or continued is refused.
func TestTampering(t *testing.T) {
	from, b := record(t, t.TempDir())
	path, _ := write(t, from, Options{}, b)
	whole := read(t, path)
	bad := filepath.Join(t.TempDir(), "bad.tar")
	refused := func(what string, content []byte) {
		t.Helper()
		if err := os.WriteFile(bad, content, 0o666); err != nil {
			t.Fatal(err)
		}
		b, err := Open(bad)
		if err == nil {
			b.Close()
		}
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: error %v, want ErrCorrupt", what, err)
		}
	}
	positions := []int{}
	for i := 0; i < len(whole); i += 1 + len(whole)/150 {
		positions = append(positions, i)
	}
	for i := len(whole) - sealSize; i < len(whole); i += 29 {
		positions = append(positions, i)
	}
	for n, i := range positions {
		content := bytes.Clone(whole)
		content[i] ^= 1 << (n % 8)
		refused("one bit", content)
	}
	refused("empty", nil)
	refused("cut", whole[:len(whole)-512])
	refused("longer", append(bytes.Clone(whole), make([]byte, 512)...))
	refused("not a tar", []byte(strings.Repeat("what is this? ", 1000)))
	refused("only a seal", sealOf(digestOf("")))
}

// A bundle that was changed and sealed again is found out by the digests within
// and by the rules for rows; the store stays as it was.
func TestForgery(t *testing.T) {
	from, b := record(t, t.TempDir())
	path, _ := write(t, from, Options{}, b)
	whole := read(t, path)
	body := whole[:len(whole)-sealSize]
	for _, tt := range []struct{ name, old, new string }{
		{"blob", "weights of b", "weights of x"},
		{"row", `7 is not 8`, `7 is not 9`},
		{"file's path", `ckpt/train-1/step`, `../../../../step`},
		{"table", `"name": "suites"`, `"name": "scores"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			forged := bytes.ReplaceAll(body, []byte(tt.old), []byte(tt.new))
			if bytes.Equal(forged, body) {
				t.Fatal("nothing was changed")
			}
			bad := filepath.Join(t.TempDir(), "bad.tar")
			if err := os.WriteFile(bad, append(forged, sealOf(ident.Sum(forged))...), 0o666); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			to := open(t, dir)
			_, err := load(t, bad, to)
			var e *Error
			if !errors.Is(err, ErrCorrupt) || !errors.As(err, &e) || e.Path != bad {
				t.Fatalf("error %v, want ErrCorrupt with the path", err)
			}
			if runs, err := to.Runs(context.Background(), store.RunQuery{}); err != nil || len(runs) != 0 {
				t.Errorf("%d runs, %v", len(runs), err)
			}
			if _, err := os.Stat(filepath.Join(dir, "step-00000002")); err == nil {
				t.Error("a file was written outside")
			}
		})
	}
}

func TestExportOfDamage(t *testing.T) {
	from, b := record(t, t.TempDir())
	at := from.Blobs.Path(digestOf("weights of b"))
	for _, content := range []string{"weights of x", "short", "", "longer than it was"} {
		os.Remove(at)
		if content != "" {
			if err := os.WriteFile(at, []byte(content), 0o444); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(t.TempDir(), "runs.tar")
		_, err := Write(context.Background(), from, path, []store.Run{b}, Options{})
		var e *blob.Error
		if !errors.As(err, &e) || content != "" && !errors.Is(err, blob.ErrCorrupt) || content == "" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: error %v", content, err)
		}
		if list, _ := os.ReadDir(filepath.Dir(path)); len(list) != 0 {
			t.Errorf("%q: left %v", content, list)
		}
	}
	if _, err := Write(context.Background(), from, filepath.Join(t.TempDir(), "x.tar"), []store.Run{b}, Options{NoWeights: true}); err != nil {
		t.Errorf("without weights: %v", err)
	}
	lock, err := from.LockRun(b.RID)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	var busy *BusyError
	if _, err := Write(context.Background(), from, filepath.Join(t.TempDir(), "x.tar"), []store.Run{b}, Options{}); !errors.As(err, &busy) {
		t.Errorf("a run that is being executed: %v", err)
	}
	m, err := Write(context.Background(), from, filepath.Join(t.TempDir(), "live.tar"), []store.Run{b}, Options{NoWeights: true, Live: true})
	if err != nil || m.Runs[len(m.Runs)-1].RID != b.RID {
		t.Errorf("a run that is being executed, as it is: %+v, %v", m, err)
	}
}
