package keep

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"exp/experiments/store"
)

// Two runs that took a stage from each other: the first was interrupted, the second went on with its
// start, and the first then took the second's evaluation.
func TestApplyTogether(t *testing.T) {
	h := newHouse(t)
	a, b, child := h.run("a", 0), h.run("b", 0), h.run("child", 0)
	weights := h.put("start")
	h.reuse(b, h.stage(a, "init", nil, []store.IO{weights}))
	scores := h.stage(b, "eval.gen", nil, []store.IO{h.put("completions")})
	h.reuse(a, scores)
	h.reuse(child, scores)
	for _, r := range []store.Run{a, b} {
		h.must(h.db.DeleteRun(h.ctx, r.ID))
	}
	h.same("while a run depends on one of them", h.brief(h.sweep(Options{Budget: -1}), nil), nil)
	h.must(h.db.DeleteRun(h.ctx, child.ID))
	plan := h.sweep(Options{Budget: -1})
	// The child is restored meanwhile.
	h.must(h.db.RestoreRun(h.ctx, child.ID))
	freed, err := Apply(h.ctx, h.db, plan)
	if err != nil || len(freed.Items) != 0 || len(freed.Kept) != 3 {
		t.Errorf("%+v, %v; want all kept", freed, err)
	}
	h.must(h.db.DeleteRun(h.ctx, child.ID))
	freed, err = Apply(h.ctx, h.db, h.sweep(Options{Budget: -1}))
	if err != nil || len(freed.Items) != 3 || len(freed.Kept) != 0 {
		t.Errorf("%+v, %v; want all gone", freed, err)
	}
	for _, r := range []store.Run{a, b, child} {
		if _, err := h.db.Run(h.ctx, r.RID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("run %s: %v", r.Name, err)
		}
	}
	if left := h.check(CheckOptions{}); !left.OK || left.Blobs != 0 || h.db.Blobs.Has(weights.Digest, weights.Size) {
		t.Errorf("left: %+v", left)
	}
}

// A folder in tmp is as young as what lies in it: an import writes for hours below one that does not
// change.
func TestSweepSparesWriting(t *testing.T) {
	h := newHouse(t)
	top := filepath.Join(h.db.Dir(), "tmp", "import-1")
	file := filepath.Join(top, "rid", "ckpt", "weights")
	h.must(os.MkdirAll(filepath.Dir(file), 0o777))
	h.must(os.WriteFile(file, nil, 0o666))
	for _, path := range []string{filepath.Dir(file), filepath.Join(top, "rid"), top} {
		h.age(path)
	}
	h.must(os.Chtimes(file, now, now))
	h.same("while it is written", h.brief(h.sweep(Options{Budget: -1}), nil), nil)
	h.age(file)
	h.same("a day later", h.brief(h.sweep(Options{Budget: -1}), nil), []string{"unfinished: file tmp/import-1 0"})
}
