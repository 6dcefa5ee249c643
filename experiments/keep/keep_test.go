package keep

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// now is when the tests look; stores are made a day before.
var now = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

func digest(format string, args ...any) ident.Digest {
	return ident.Sum(fmt.Appendf(nil, format, args...))
}

// house is a store under construction.
type house struct {
	*testing.T
	db  *store.DB
	ctx context.Context
}

func newHouse(t *testing.T) *house {
	t.Helper()
	tick := now.Add(-24 * time.Hour)
	db, err := store.Open(filepath.Join(t.TempDir(), `a [store]`), store.Options{Create: true, Clock: func() time.Time {
		tick = tick.Add(time.Second)
		return tick
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &house{t, db, context.Background()}
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *house) run(name string, parent int64) store.Run {
	h.Helper()
	r, _, err := h.db.EnsureRun(h.ctx, store.NewRun{RID: digest("rid %s", name), XID: digest("xid"), Name: name, Parent: parent, Code: digest("code %s", name),
		Config: store.Config{Digest: digest("config"), JSON: "{}", Origins: "{}"}})
	h.must(err)
	return r
}

// put stores a blob that is a day old.
func (h *house) put(text string) store.IO {
	h.Helper()
	d, err := h.db.Blobs.PutBytes([]byte(text))
	h.must(err)
	h.age(h.db.Blobs.Path(d))
	return store.IO{Role: text, Digest: d, Size: int64(len(text)), Kind: "text"}
}

func (h *house) age(path string) {
	h.Helper()
	h.must(os.Chtimes(path, now.Add(-24*time.Hour), now.Add(-24*time.Hour)))
}

func (h *house) stage(r store.Run, kind string, in, out []store.IO) store.Stage {
	h.Helper()
	s, err := h.db.BeginStage(h.ctx, store.Stage{SID: digest("sid %s %v", kind, out), Run: r.ID, Kind: kind, Inputs: in, Code: digest("code %s", r.Name)})
	h.must(err)
	h.must(h.db.FinishStage(h.ctx, s.ID, out, store.StageResult{}, nil))
	return s
}

// reuse lets a run take the outputs of a stage.
func (h *house) reuse(r store.Run, s store.Stage) {
	h.Helper()
	hit, err := h.db.Hit(h.ctx, s.SID)
	h.must(err)
	_, err = h.db.ReuseStage(h.ctx, store.Stage{SID: s.SID, Run: r.ID, Kind: s.Kind}, hit)
	h.must(err)
}

func (h *house) sample(s store.Stage, scope, text string) ident.Digest {
	h.Helper()
	w := h.db.Blobs.NewPackWriter()
	h.must(w.Add(text))
	refs, packs, err := w.Close()
	h.must(err)
	h.must(h.db.AddSamples(h.ctx, []store.Sample{{Stage: s.Home, Scope: scope, Item: text, Reward: 1, LogProbSum: -1, Ref: refs[0]}}, packs))
	h.age(h.db.Blobs.Path(packs[0].Digest))
	return packs[0].Digest
}

func (h *house) checkpoint(r store.Run, stage string, step int64) string {
	h.Helper()
	dir := filepath.Join(h.db.RunDir(r.RID), "ckpt", stage, fmt.Sprintf("step-%08d", step))
	h.must(os.MkdirAll(dir, 0o777))
	h.must(os.WriteFile(filepath.Join(dir, "weights"), make([]byte, 1000), 0o666))
	h.age(dir)
	return dir
}

// steps records n steps with a true chain.
func (h *house) steps(r store.Run, n int64, metrics func(step int64) map[string]float64) {
	h.Helper()
	w := h.db.NewStepWriter(r.ID, 0, nil)
	chain := ident.ChainStart(r.RID)
	for i := int64(1); i <= n; i++ {
		det := ident.Det{Step: i, Items: digest("items %d", i), Metrics: metrics(i)}
		var err error
		chain, err = det.Next(chain)
		h.must(err)
		h.must(w.Record(store.Step{Det: det, Chain: chain, Measured: map[string]float64{"time": 1}}))
	}
	h.must(w.Close())
}

func (h *house) sweep(o Options) *Plan {
	h.Helper()
	if o.Now.IsZero() {
		o.Now = now
	}
	p, err := Sweep(h.ctx, h.db, o)
	h.must(err)
	return p
}

// apply applies a plan and expects that nothing stays after all.
func (h *house) apply(p *Plan) {
	h.Helper()
	freed, err := Apply(h.ctx, h.db, p)
	h.must(err)
	if len(freed.Kept) > 0 || len(freed.Items) != len(p.Items) {
		h.Errorf("went %v, kept %v", freed.Items, freed.Kept)
	}
	h.must(h.db.Check(h.ctx))
}

// brief lists items as "kind what name".
func (h *house) brief(p *Plan, names map[string]string) (list []string) {
	for _, it := range p.Items {
		name := it.Name
		if n, ok := names[name]; ok {
			name = n
		}
		list = append(list, fmt.Sprintf("%s: %s %s %d", it.Kind, it.What, name, it.Bytes))
	}
	return list
}

func (h *house) same(what string, got, want []string) {
	h.Helper()
	if d := cmp.Diff(want, got); d != "" {
		h.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// fullHouse has a run that stays and reuses a stage of a deleted run, a deleted run
// that nobody needs, and the leftovers of killed processes.
//
//	kept      prepare (of shared), train: in, out, a pack of training, one of eval
//	shared    deleted, but kept reuses its prepare
//	gone      deleted; reads shared's problems, wrote its own weights
func fullHouse(t *testing.T) (h *house, names map[string]string) {
	h = newHouse(t)
	shared, kept, gone := h.run("shared", 0), h.run("kept", 0), h.run("gone", 0)
	problems := h.put("problems")
	prepare := h.stage(shared, "prepare", nil, []store.IO{problems})
	h.stage(shared, "train", nil, []store.IO{h.put("weights of shared")})
	h.reuse(kept, prepare)
	train := h.stage(kept, "train", []store.IO{problems}, []store.IO{h.put("weights of kept")})
	trainPack := h.sample(train, "train", "a training sample")
	h.sample(train, "eval", "an evaluated sample")
	goneTrain := h.stage(gone, "train", []store.IO{problems}, []store.IO{h.put("weights of gone")})
	h.sample(goneTrain, "train", "a training sample of gone")
	stray := h.put("stray")
	h.must(os.MkdirAll(filepath.Join(h.db.Dir(), "tmp"), 0o777))
	for _, name := range []string{"blob-old", "blob-new"} {
		path := filepath.Join(h.db.Dir(), "tmp", name)
		h.must(os.WriteFile(path, []byte("half"), 0o666))
		h.must(os.Chtimes(path, now, now))
	}
	h.age(filepath.Join(h.db.Dir(), "tmp", "blob-old"))
	h.must(h.db.DeleteRun(h.ctx, shared.ID))
	h.must(h.db.DeleteRun(h.ctx, gone.ID))
	return h, map[string]string{stray.Digest.String(): "stray", gone.RID.String(): "gone", shared.RID.String(): "shared", trainPack.String(): "pack of kept"}
}

func TestSweep(t *testing.T) {
	h, names := fullHouse(t)
	before := tree(t, h.db.Dir())
	p := h.sweep(Options{Budget: -1})
	goneBytes := p.Items[len(p.Items)-1].Bytes
	want := []string{"unfinished: file tmp/blob-old 4", "unreferenced: never recorded stray 5", fmt.Sprintf("deleted runs: run gone %d", goneBytes)}
	h.same("plan", h.brief(p, names), want)
	if pack := int64(len("weights of gone")); goneBytes <= pack {
		t.Errorf("the deleted run is %d bytes, want its weights (%d) and its pack", goneBytes, pack)
	}
	if after := tree(t, h.db.Dir()); after != before {
		t.Errorf("a sweep changed something:\n%s\nbefore:\n%s", after, before)
	}
	h.apply(p)
	for text, there := range map[string]bool{"problems": true, "weights of kept": true, "weights of shared": true, "weights of gone": false, "stray": false} {
		if _, err := h.db.Blobs.Stat(digest("%s", text)); (err == nil) != there {
			t.Errorf("%s: %v, want there: %v", text, err, there)
		}
	}
	if _, err := h.db.Run(h.ctx, digest("rid gone")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the deleted run: %v", err)
	}
	if _, err := os.Stat(h.db.RunDir(digest("rid gone"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder: %v", err)
	}
	h.same("plan after", h.brief(h.sweep(Options{Budget: -1}), names), nil)
	report, err := Check(h.ctx, h.db, CheckOptions{Deep: true, Now: now})
	if err != nil || len(report.Findings) > 0 {
		t.Errorf("check afterwards: %+v, %v", report, err)
	}
	// The id of a run that went may be used again.
	h.run("gone", 0)
}

func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	h := os.DirFS(dir)
	names, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(h, err)
	}
	for _, n := range names {
		fmt.Fprintln(&b, n)
	}
	return b.String()
}

// What protects something from being swept, one thing each.
func TestSweepSpares(t *testing.T) {
	for _, tt := range []struct {
		name    string
		protect func(h *house)
		o       Options
		want    []string
	}{
		{"a pin", func(h *house) {
			h.must(h.db.AddTag(h.ctx, runOf(h, "gone").ID, store.PinTag))
		}, Options{Budget: -1}, []string{"unfinished", "unreferenced"}},
		{"a dependant", func(h *house) { h.run("child", runOf(h, "gone").ID) }, Options{Budget: -1}, []string{"unfinished", "unreferenced"}},
		{"a live lock", func(h *house) {
			l, err := h.db.LockRun(digest("rid gone"))
			h.must(err)
			h.Cleanup(func() { l.Release() })
		}, Options{Budget: -1}, []string{"unfinished", "unreferenced"}},
		{"a run that began before", func(h *house) {
			l, err := h.db.LockRun(digest("rid kept"))
			h.must(err)
			h.Cleanup(func() { l.Release() })
			h.must(os.Chtimes(h.db.Blobs.Path(digest("stray")), now.Add(time.Hour), now.Add(time.Hour)))
		}, Options{Budget: -1, Now: now.Add(48 * time.Hour)}, []string{"unfinished", "unfinished", "deleted runs"}},
		{"age", func(h *house) {}, Options{Budget: -1, OlderThan: 48 * time.Hour}, nil},
		{"youth", func(h *house) {}, Options{Budget: -1, Now: now.Add(-23*time.Hour - 30*time.Minute)}, []string{"deleted runs"}},
		{"restoring", func(h *house) { h.must(h.db.RestoreRun(h.ctx, runOf(h, "gone").ID)) }, Options{Budget: -1}, []string{"unfinished", "unreferenced"}},
		{"the last dependant", func(h *house) { h.must(h.db.DeleteRun(h.ctx, runOf(h, "kept").ID)) }, Options{Budget: -1},
			[]string{"unfinished", "unreferenced", "deleted runs", "deleted runs", "deleted runs"}},
		{"enough room", func(h *house) {}, Options{Budget: 1 << 40}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := fullHouse(t)
			tt.protect(h)
			p := h.sweep(tt.o)
			var got []string
			for _, it := range p.Items {
				got = append(got, string(it.Kind))
			}
			h.same("kinds", got, tt.want)
			h.apply(p)
		})
	}
}

func runOf(h *house, name string) store.Run {
	h.Helper()
	r, err := h.db.Run(h.ctx, digest("rid %s", name))
	h.must(err)
	return r
}

// A budget drops in its order and not more than it needs.
func TestBudget(t *testing.T) {
	h, names := fullHouse(t)
	kept := runOf(h, "kept")
	for _, step := range []int64{10, 20, 30} {
		h.checkpoint(kept, "train-1", step)
	}
	h.checkpoint(kept, "sft-1", 5)
	h.must(h.db.AddTag(h.ctx, kept.ID, store.CheckpointPin(20)))
	all := h.sweep(Options{Budget: 0})
	var order []string
	for _, it := range all.Items {
		order = append(order, string(it.Kind))
	}
	h.same("order", order, []string{"unfinished", "unreferenced", "training samples", "checkpoints", "deleted runs"})
	if all.Items[3].Name != filepath.Join("runs", kept.RID.String(), "ckpt", "train-1", "step-00000010") || all.Items[3].Bytes != 1000 {
		t.Errorf("checkpoint %+v, want only step 10", all.Items[3])
	}
	want := all.Total
	for _, it := range all.Items {
		want -= it.Bytes
	}
	if all.Over != want {
		t.Errorf("over by %d, want %d", all.Over, want)
	}
	// 4 bytes of the unfinished file and one of the stray blob's are enough.
	p := h.sweep(Options{Budget: all.Total - 5})
	h.same("two", h.brief(p, names), []string{"unfinished: file tmp/blob-old 4", "unreferenced: never recorded stray 5"})
	p = h.sweep(Options{Budget: all.Total - all.Items[0].Bytes - all.Items[1].Bytes - all.Items[2].Bytes - 1})
	if len(p.Items) != 4 || p.Over != 0 {
		t.Errorf("plan %v", h.brief(p, names))
	}
	h.apply(p)
	left, err := Saved(h.db, kept.RID)
	h.must(err)
	var steps []string
	for _, c := range left {
		steps = append(steps, fmt.Sprint(c.Stage, " ", c.Step))
	}
	h.same("checkpoints left", steps, []string{"sft-1 5", "train-1 20", "train-1 30"})
	samples, err := h.db.Samples(h.ctx, kept.ID, store.SampleQuery{})
	if err != nil || len(samples) != 2 || !samples[0].Ref.Pack.IsZero() || samples[0].Reward != 1 || samples[1].Ref.Pack.IsZero() {
		t.Errorf("samples %+v, %v: want training's without text, the evaluation's with it", samples, err)
	}
	if _, err := h.db.Run(h.ctx, digest("rid gone")); err != nil {
		t.Errorf("the budget had no need of the deleted run: %v", err)
	}
}

// What came into use after the sweep stays.
func TestApplyLooksAgain(t *testing.T) {
	h, _ := fullHouse(t)
	p := h.sweep(Options{Budget: -1})
	h.must(h.db.RestoreRun(h.ctx, runOf(h, "gone").ID))
	stray, err := h.db.Blobs.PutBytes([]byte("stray")) // makes it young
	h.must(err)
	freed, err := Apply(h.ctx, h.db, p)
	h.must(err)
	var kept []string
	for _, k := range freed.Kept {
		kept = append(kept, string(k.Item.Kind))
	}
	h.same("kept", kept, []string{"unreferenced", "deleted runs"})
	if !h.db.Blobs.Has(stray, 5) || !h.db.Blobs.Has(digest("weights of gone"), 15) {
		t.Error("a blob in use went")
	}
}

// Blobs, chains and rows, each damaged in one way.
func TestCheck(t *testing.T) {
	some := func(i int64) map[string]float64 {
		return map[string]float64{"reward": float64(i) / 7, "clipped": 0, "loss": math.Copysign(0, -1)}
	}
	for _, tt := range []struct {
		name     string
		damage   func(h *house)
		want     []string // fault: runs
		detail   string
		repaired []string // findings after a repair
	}{
		{"nothing", func(h *house) {}, nil, "", nil},
		{"blob missing", func(h *house) { h.must(os.Remove(h.db.Blobs.Path(digest("problems")))) }, []string{"missing: shared kept gone"}, "is missing", []string{"missing: shared kept gone"}},
		{"blob shorter", func(h *house) { h.bend("problems", "problem") }, []string{"corrupt: shared kept gone"}, "has 7 bytes, recorded as 8", []string{"missing: shared kept gone"}},
		{"blob changed", func(h *house) { h.bend("weights of kept", "weights or kept") }, []string{"corrupt: kept"}, "has the wrong bytes", []string{"missing: kept"}},
		{"sources changed", func(h *house) {
			archive := h.put("archive")
			h.must(h.db.AddSource(h.ctx, store.Source{Code: runOf(h, "kept").Code, Go: "go1.26", Archive: archive.Digest,
				Size: archive.Size, Files: []ident.File{{Path: "a.go", SHA256: digest("not these")}}}))
		}, []string{"sources: kept"}, "gives another digest", []string{"sources: kept"}},
		{"killed", func(h *house) {
			_, err := h.db.BeginAttempt(h.ctx, store.Attempt{Run: runOf(h, "kept").ID, Kind: store.AttemptRun})
			h.must(err)
		}, []string{"stale: kept"}, "its process is gone", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := fullHouse(t)
			h.steps(runOf(h, "kept"), 5, some)
			tt.damage(h)
			before, err := h.db.RecordedBlobs(h.ctx)
			h.must(err)
			got := h.check(CheckOptions{Deep: true, Now: now})
			h.same("findings", faults(got), tt.want)
			if len(tt.want) > 0 && !strings.Contains(got.Findings[0].Detail, tt.detail) {
				t.Errorf("detail %q lacks %q", got.Findings[0].Detail, tt.detail)
			}
			if got.OK == (len(tt.want) > 0 && tt.name != "killed") {
				t.Errorf("damaged: %v", !got.OK)
			}
			if tt.name == "nothing" && (got.Steps != 5 || got.Recomputed != 5 || got.Blobs != len(before) || got.Bytes == 0 || got.Runs != 3) {
				t.Errorf("report %+v, want 5 steps, all recomputed, and all of %d blobs", got, len(before))
			}
			// Checking changed nothing; a repair does.
			h.same("again", faults(h.check(CheckOptions{Deep: true, Now: now})), tt.want)
			h.check(CheckOptions{Deep: true, Repair: true, Now: now})
			h.same("after a repair", faults(h.check(CheckOptions{Deep: true, Now: now})), tt.repaired)
		})
	}
}

// The problems of a suite stay, and are checked, until the suite is removed; the problems of a
// suite that a run was scored on are that run's too.
func TestSuites(t *testing.T) {
	h, _ := fullHouse(t)
	var ids []int64
	for _, name := range []string{"scored", "waiting"} {
		problems := h.put(name + " suite")
		id, err := h.db.AddSuite(h.ctx, store.Suite{Digest: problems.Digest, Name: name, Items: []store.Item{{ID: "p"}}}, problems.Size)
		h.must(err)
		ids = append(ids, id)
	}
	score, err := h.db.BeginStage(h.ctx, store.Stage{SID: digest("score"), Run: runOf(h, "kept").ID, Kind: "eval.score", Label: "scored"})
	h.must(err)
	h.must(h.db.FinishStage(h.ctx, score.ID, nil, store.StageResult{}, []store.Eval{{Suite: ids[0], N: 1, Metric: "pass@1", Protocol: digest("p")}}))
	h.apply(h.sweep(Options{Budget: 0}))
	h.same("findings", faults(h.check(CheckOptions{Deep: true, Now: now})), nil)
	h.bend("scored suite", "scored switch")
	h.must(os.Remove(h.db.Blobs.Path(digest("waiting suite"))))
	got := faults(h.check(CheckOptions{Deep: true, Now: now}))
	slices.Sort(got)
	h.same("findings", got, []string{"corrupt: kept", "missing: "})
	problems := h.put("waiting suite")
	h.must(h.db.RemoveSuite(h.ctx, ids[1]))
	p := h.sweep(Options{Budget: -1})
	h.same("removed", h.brief(p, map[string]string{problems.Digest.String(): "waiting"}), []string{"unreferenced: suite waiting 13"})
	h.apply(p)
}

// Without Deep only sizes are compared; a quarantined blob can be rebuilt.
func TestQuarantine(t *testing.T) {
	h, _ := fullHouse(t)
	h.bend("weights of kept", "weights or kept")
	if got := h.check(CheckOptions{Now: now}); len(got.Findings) > 0 {
		t.Errorf("shallow: %+v", got.Findings)
	}
	got := h.check(CheckOptions{Deep: true, Repair: true, Now: now})
	where, found := strings.CutPrefix(got.Findings[0].Repaired, "moved to ")
	text, err := os.ReadFile(where)
	if !found || err != nil || string(text) != "weights or kept" {
		t.Errorf("repaired: %q; it holds %q, %v", got.Findings[0].Repaired, text, err)
	}
	events, err := h.db.Events(h.ctx, runOf(h, "kept").ID, 0)
	if err != nil || len(events) != 1 || events[0].Kind != "blob-quarantined" || events[0].Level != store.LevelError {
		t.Errorf("events %+v, %v", events, err)
	}
	h.put("weights of kept")
	if got := h.check(CheckOptions{Deep: true, Now: now}); len(got.Findings) > 0 {
		t.Errorf("rebuilt: %+v", got.Findings)
	}
}

// A changed metric is found among as many zeros as steps have, some of them negative.
func TestCheckManyZeros(t *testing.T) {
	h, _ := fullHouse(t)
	r := runOf(h, "kept")
	h.steps(r, 6, func(i int64) map[string]float64 {
		m := map[string]float64{"entropy": float64(i) / 7}
		for z := range 24 {
			m[fmt.Sprintf("zero/%02d", z)] = 0
		}
		for z := range int(i) % 4 {
			m[fmt.Sprintf("zero/%02d", 5*z)] = math.Copysign(0, -1)
		}
		return m
	})
	if got := h.check(CheckOptions{Now: now}); !got.OK || got.Recomputed != 6 {
		t.Fatalf("%+v, want 6 steps recomputed", got)
	}
	db, err := sql.Open("sqlite3", filepath.Join(h.db.Dir(), "exp.db"))
	h.must(err)
	defer db.Close()
	_, err = db.Exec(`UPDATE metrics SET value = 9.9 WHERE step = 5 AND series = (SELECT id FROM series WHERE name = 'entropy' AND run = ?)`, r.ID)
	h.must(err)
	got := h.check(CheckOptions{Now: now})
	h.same("findings", faults(got), []string{"chain: kept", "summary: kept"})
	if !strings.Contains(got.Findings[0].Detail, "step 5 was changed") {
		t.Error(got.Findings[0].Detail)
	}
}

// NaN keeps no bits in the database: such a step can neither be proved nor refuted.
func TestCheckNaN(t *testing.T) {
	h, _ := fullHouse(t)
	h.steps(runOf(h, "kept"), 3, func(i int64) map[string]float64 {
		v := float64(i)
		if i == 2 {
			v = math.Float64frombits(0x7ff8000000000123)
		}
		return map[string]float64{"reward": v}
	})
	if got := h.check(CheckOptions{Now: now}); len(got.Findings) > 0 || got.Steps != 3 || got.Recomputed != 2 {
		t.Errorf("%+v, want 2 of 3 steps recomputed", got)
	}
}

func (h *house) check(o CheckOptions) *Report {
	h.Helper()
	r, err := Check(h.ctx, h.db, o)
	h.must(err)
	return r
}

func faults(r *Report) (list []string) {
	for _, f := range r.Findings {
		var names []string
		for _, run := range f.Runs {
			names = append(names, run.Name)
		}
		list = append(list, string(f.Fault)+": "+strings.Join(names, " "))
	}
	return list
}

// bend replaces a blob's bytes.
func (h *house) bend(text, by string) {
	h.Helper()
	path := h.db.Blobs.Path(digest("%s", text))
	h.must(os.Chmod(path, 0o644))
	h.must(os.WriteFile(path, []byte(by), 0o644))
}

// A pin of a run and pins of checkpoints are apart; only a checkpoint that is there can
// be pinned.
func TestPin(t *testing.T) {
	h := newHouse(t)
	r := h.run("pinned", 0)
	tags := func(want ...string) {
		h.Helper()
		got, err := h.db.Tags(h.ctx, r.ID)
		h.must(err)
		h.same("tags", got, want)
	}
	var none *NoCheckpointError
	if err := PinCheckpoint(h.ctx, h.db, r, 10); !errors.As(err, &none) || len(none.There) != 0 {
		t.Errorf("without checkpoints: %v", err)
	}
	for _, stage := range []string{"sft-1", "train-1"} {
		h.checkpoint(r, stage, 10)
	}
	h.checkpoint(r, "train-1", 20)
	if err := PinCheckpoint(h.ctx, h.db, r, 30); !errors.As(err, &none) || !slices.Equal(none.There, []int64{10, 20}) || !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another step: %v", err)
	}
	h.must(PinCheckpoint(h.ctx, h.db, r, 20))
	h.must(Pin(h.ctx, h.db, r))
	tags("pinned", "pinned@20")
	h.must(os.RemoveAll(filepath.Join(h.db.RunDir(r.RID), "ckpt")))
	h.must(UnpinCheckpoint(h.ctx, h.db, r, 20))
	h.must(Unpin(h.ctx, h.db, r))
	tags()
	for _, err := range []error{Unpin(h.ctx, h.db, r), UnpinCheckpoint(h.ctx, h.db, r, 20)} {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("twice: %v", err)
		}
	}
}

// What a run would miss, and who would miss it.
func TestNeed(t *testing.T) {
	h, _ := fullHouse(t)
	kept, shared := runOf(h, "kept"), runOf(h, "shared")
	if lost, err := Lost(h.ctx, h.db, kept); err != nil || len(lost) > 0 {
		t.Errorf("lost %v, %v", lost, err)
	}
	h.must(os.Remove(h.db.Blobs.Path(digest("problems"))))
	h.bend("weights of kept", "short")
	lost, err := Lost(h.ctx, h.db, kept)
	h.must(err)
	if len(lost) != 2 || !slices.Contains(lost, digest("problems")) || !slices.Contains(lost, digest("weights of kept")) {
		t.Errorf("lost %v, want the problems and the weights", lost)
	}
	needs := func(r store.Run, want ...string) {
		h.Helper()
		list, err := NeededBy(h.ctx, h.db, r)
		h.must(err)
		var names []string
		for _, r := range list {
			names = append(names, r.Name)
		}
		h.same("needed by", names, want)
	}
	h.run("child", shared.ID)
	needs(shared, "kept", "child")
	h.must(h.db.DeleteRun(h.ctx, kept.ID))
	needs(shared, "child")
	needs(kept)
}

func TestGroups(t *testing.T) {
	got := Groups([]Item{{Kind: Unreferenced, What: "weights", Bytes: 3, Time: now}, {Kind: Unreferenced, What: "text", Bytes: 1, Time: now},
		{Kind: Unreferenced, What: "weights", Bytes: 4, Time: now.Add(-time.Hour)}, {Kind: Training, What: "text", Bytes: 2, Time: now}})
	want := []Group{{Unreferenced, "weights", 2, 7, now.Add(-time.Hour)}, {Unreferenced, "text", 1, 1, now}, {Training, "text", 1, 2, now}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
