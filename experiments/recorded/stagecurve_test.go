package recorded

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"exp/experiments/store"
)

// A value that was not finite is a gap of a metric of every step; a metric of some steps has no gaps.
func TestParseStageCurve(t *testing.T) {
	curves, err := parseStageCurve([]byte(`{"sft/loss":2,"sft/lr":1,"step":1}
{"sft/lr":1,"step":2,"val/loss":7}
{"sft/loss":1,"sft/lr":1,"step":3}
{"sft/loss":3,"sft/lr":1,"step":4}
`))
	if err != nil || len(curves) != 3 {
		t.Fatalf("%d curves, %v", len(curves), err)
	}
	loss, rare := curves[0], curves[2]
	if loss.Name != "sft/loss" || !slices.Equal(loss.Steps, []int64{1, 2, 3, 4}) || loss.Values[0] != 2 || !math.IsNaN(loss.Values[1]) ||
		loss.N != 4 || loss.Last != 3 || loss.LastStep != 4 || loss.Min != 1 || loss.ArgMin != 3 || loss.Max != 3 || loss.ArgMax != 4 {
		t.Errorf("loss: %+v", loss)
	}
	if rare.Name != "val/loss" || !slices.Equal(rare.Steps, []int64{2}) || rare.Values[0] != 7 {
		t.Errorf("rare: %+v", rare)
	}
	for text, want := range map[string]string{
		"{\"step\":1}\nnonsense\n":         "line 2",
		"{\"step\":1}\n{\"sft/loss\":2}\n": "line 2 has no step",
	} {
		if _, err := parseStageCurve([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// The newest stage of a kind counts: what it kept, or the steps so far of one that has not ended.
func TestStageCurves(t *testing.T) {
	f := newFixture(t)
	find := func(live bool) []StageCurve {
		t.Helper()
		stages, err := f.db.Stages(f.ctx, f.child.ID)
		f.must(err)
		return StageCurves(f.db, f.child, stages, []string{"sft", "prefer"}, live)
	}
	if got := find(true); len(got) != 0 {
		t.Errorf("without such stages: %+v", got)
	}
	begun, err := f.db.BeginStage(f.ctx, store.Stage{SID: digest("sft"), Run: f.child.ID, Kind: "sft", Code: digest("code")})
	f.must(err)
	f.must(os.MkdirAll(f.db.RunDir(f.child.RID), 0o777))
	if got := find(true); len(got) != 0 {
		t.Errorf("before its first step: %+v", got)
	}
	l := f.db.NewLiveSteps(f.child.RID, digest("sft"))
	l.Add(1, map[string]float64{"sft/loss": 2})
	l.Close()
	if got := find(false); len(got) != 0 {
		t.Errorf("a stage that has not ended: %+v", got)
	}
	got := find(true)
	if len(got) != 1 || !got[0].Live || got[0].Kind != "sft" {
		t.Fatalf("%+v", got)
	}
	curves, err := got[0].Read(f.db)
	if err != nil || len(curves) != 1 || curves[0].Last != 2 {
		t.Errorf("%+v, %v", curves, err)
	}
	text := []byte("{\"sft/loss\":1,\"step\":1}\n")
	kept, err := f.db.Blobs.PutBytes(text)
	f.must(err)
	f.must(f.db.FinishStage(f.ctx, begun.ID, []store.IO{{Role: "weights", Digest: kept, Size: int64(len(text))}, {Role: "curve", Digest: kept, Size: int64(len(text))}},
		store.StageResult{}, nil))
	for _, live := range []bool{false, true} {
		if got := find(live); len(got) != 1 || got[0].Live || got[0].Key != kept {
			t.Errorf("live %t: %+v", live, got)
		}
	}
	f.must(os.Remove(f.db.Blobs.Path(kept)))
	if _, err := find(false)[0].Read(f.db); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "stage sft") {
		t.Errorf("a missing file: %v", err)
	}
}

// Runs that share a stage have its curve once, and so have arms.
func TestShareCurves(t *testing.T) {
	c := func(names ...string) (list []KeyedCurve) {
		for _, name := range names {
			list = append(list, KeyedCurve{digest(name), store.Curve{Series: store.Series{Name: name}}})
		}
		return list
	}
	got := ShareCurves([][]KeyedCurve{c("a", "a"), c("b", "a"), nil, c("a"), c("a", "b", "b")})
	if len(got) != 2 || !slices.Equal(got[0].Arms, []int{0, 3}) || len(got[0].Curves) != 1 || got[0].Curves[0].Name != "a" ||
		!slices.Equal(got[1].Arms, []int{1, 4}) || len(got[1].Curves) != 2 {
		t.Errorf("%+v", got)
	}
	if got := ShareCurves(make([][]KeyedCurve, 2)); got != nil {
		t.Errorf("without curves: %+v", got)
	}
}
