package query

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// fixture is a store whose clock starts two days before now and ticks an hour,
// with these runs, oldest first:
//
//	a#0 a#1 a#2   experiment xa; a#1 is tagged "best one"; losses 3 1 2
//	b#0 b#1       experiment xb; b#1 is running
//	a#0           of the same name and seed, experiment xc
//	cafe#0        a name that looks like the beginning of an id
//	gone#0        deleted
func fixture(t *testing.T) Finder {
	t.Helper()
	tick := now.Add(-48 * time.Hour)
	db, err := store.Open(t.TempDir(), store.Options{Create: true, Clock: func() time.Time {
		tick = tick.Add(time.Minute)
		return tick
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []struct {
		name, xid string
		seed      int64
		rid       string // first digits
		loss      float64
	}{
		{"a", "xa", 0, "11110000", 3},
		{"a", "xa", 1, "11111111", 1},
		{"a", "xa", 2, "22220000", 2},
		{"b", "xb", 0, "33330000", 0},
		{"b", "xb", 1, "44440000", 0},
		{"a", "xc", 0, "55550000", 3},
		{"cafe", "xd", 0, "66660000", 0},
		{"other", "xe", 0, "cafe0000", 0},
		{"gone", "xf", 0, "77770000", 9},
	} {
		rid, err := ident.ParseDigest(r.rid + strings.Repeat("0", 56))
		must(err)
		run, _, err := db.EnsureRun(ctx, store.NewRun{RID: rid, XID: ident.Sum([]byte(r.xid)), Name: r.name, Seed: r.seed,
			Algo: "ppo", Config: store.Config{Digest: ident.Sum([]byte(r.xid)), JSON: `{"x":"` + r.xid + `"}`}})
		must(err)
		if r.loss > 0 {
			w := db.NewStepWriter(run.ID, 0, nil)
			must(w.Record(store.Step{Det: ident.Det{Step: 1, Metrics: map[string]float64{"loss": r.loss}}, Chain: rid}))
			must(w.Close())
		}
		switch r.rid {
		case "11111111":
			must(db.AddTag(ctx, run.ID, "best one"))
		case "33330000":
			must(db.SetHeadline(ctx, run.ID, []store.Headline{{Name: "acc", Value: 0.5}}))
		case "44440000":
			lock, err := db.LockRun(rid)
			must(err)
			t.Cleanup(func() { lock.Release() })
			_, err = db.BeginAttempt(ctx, store.Attempt{Run: run.ID, Kind: store.AttemptRun})
			must(err)
		case "77770000":
			must(db.DeleteRun(ctx, run.ID))
		}
	}
	return Finder{DB: db, Now: now, Lower: func(name string) (bool, bool) { return false, name != "taste" }}
}

// ids are the first four digits of the runs' ids.
func ids(runs []store.Run) string {
	var list []string
	for _, r := range runs {
		list = append(list, r.RID.String()[:4])
	}
	return strings.Join(list, " ")
}

func TestReferences(t *testing.T) {
	f := fixture(t)
	tests := []struct {
		ref string
		all string // ids of All; "" is not found, "?" is ambiguous even there
	}{
		{"2222", "2222"},
		{"222200", "2222"},
		{"1111", "?"}, // two ids
		{"11111", "1111"},
		{"22220000" + strings.Repeat("0", 56), "2222"},
		{"22220000" + strings.Repeat("0", 57), ""},
		{"222", ""}, // too short
		{"2223", ""},
		{"a", "5555 2222 1111 1111"},
		{"b", "4444 3333"},
		{"a#2", "2222"},
		{"a#0", "5555 1111"},
		{"a#9", ""},
		{"a#x", ""},
		{"cafe", "?"}, // a name and an id
		{"cafe#0", "6666"},
		{"cafe00", "cafe"},
		{"other", "cafe"},
		{"gone", ""},
		{"7777", ""},
		{"tag:best one", "1111"},
		{"tag:none", ""},
		{"tag:", ""},
		{"xid:" + ident.Sum([]byte("xa")).String()[:4], "2222 1111 1111"},
		{"xid:" + ident.Sum([]byte("xa")).String()[:3], ""},
		{"xid:zzzz", ""},
		{"@last", "cafe"},
		{"@last~0", "cafe"},
		{"@last~1", "6666"},
		{"@last~7", "1111"},
		{"@last~8", ""},
		{"@last~-1", ""},
		{"@last~x", ""},
		{"@last~99999999999", ""},
		{"@running", "4444"},
		{"@best:loss", "5555"}, // 3 twice: the newer
		{"@best:metric.loss.min", "5555"},
		{"@best:min:loss", "1111"},
		{"@best:max:loss", "5555"},
		{"@best:acc", "3333"}, // a headline result
		{"@best:taste", ""},   // neither more nor less of it is better
		{"@best:max:taste", ""},
		{"@best:none", ""},
		{"@best:", ""},
		{"@first", ""},
		{"", ""},
	}
	ctx := context.Background()
	for _, tt := range tests {
		all, err := f.All(ctx, tt.ref)
		var missing *NotFoundError
		var ambiguous *AmbiguousError
		switch tt.all {
		case "":
			if !errors.As(err, &missing) || !errors.Is(err, store.ErrNotFound) || missing.Ref != tt.ref {
				t.Errorf("All(%q) = %s, %v, want *NotFoundError", tt.ref, ids(all), err)
			}
		case "?":
			if !errors.As(err, &ambiguous) {
				t.Errorf("All(%q) = %s, %v, want *AmbiguousError", tt.ref, ids(all), err)
			}
		default:
			if err != nil || ids(all) != tt.all {
				t.Errorf("All(%q) = %s, %v, want %s", tt.ref, ids(all), err, tt.all)
			}
		}

		one, err := f.One(ctx, tt.ref)
		switch {
		case tt.all == "":
			if !errors.As(err, &missing) {
				t.Errorf("One(%q): error %v, want *NotFoundError", tt.ref, err)
			}
		case tt.all == "?" || strings.Contains(tt.all, " "):
			if !errors.As(err, &ambiguous) || ambiguous.Ref != tt.ref {
				t.Errorf("One(%q): error %v, want *AmbiguousError", tt.ref, err)
			}
		case err != nil || one.RID.String()[:4] != tt.all:
			t.Errorf("One(%q) = %s, %v, want %s", tt.ref, one.RID.Short(), err, tt.all)
		}
	}

	f.Deleted = true
	if all, err := f.All(ctx, "7777"); err != nil || ids(all) != "7777" {
		t.Errorf("among deleted runs: %s, %v", ids(all), err)
	}
	if all, err := f.All(ctx, "2222"); err == nil {
		t.Errorf("among deleted runs: %s", ids(all))
	}
}

func TestAmbiguousErrorLists(t *testing.T) {
	f := fixture(t)
	_, err := f.One(context.Background(), "b")
	// b#0 is the fourth: the clock has ticked for 3 runs, 3 writers of a step and
	// one more each for the step itself.
	const want = `"b" matches 2 runs:
  44440000  b#1  running  2026-03-08 12:08
  33330000  b#0  pending  2026-03-08 12:07`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if hint := err.(*AmbiguousError).Hint(); !strings.Contains(hint, "name#seed") {
		t.Errorf("seeds differ: %s", hint)
	}
	many := &AmbiguousError{Ref: "x", Candidates: make([]store.Run, 12)}
	if text := many.Error(); strings.Count(text, "\n") != 11 || !strings.HasSuffix(text, "and 2 more") || strings.Contains(many.Hint(), "name#seed") {
		t.Errorf("12 candidates:\n%s", text)
	}
}

func TestSelect(t *testing.T) {
	f := fixture(t)
	tests := []struct {
		selections []string
		stdin      string
		want       string
	}{
		{[]string{"2222"}, "", "2222"},
		{[]string{"b", "2222", "b#0"}, "", "4444 3333 2222"},
		{[]string{"name = b"}, "", "4444 3333"},
		{[]string{"name=b", "a"}, "", "4444 3333 5555 2222 1111 1111"},
		{[]string{"not name = a and not name = b"}, "", "cafe 6666"},
		{[]string{"metric.loss >= 2"}, "", "5555 2222 1111"},
		{[]string{"config.x in [xb, xd]"}, "", "6666 4444 3333"},
		{[]string{"status = running"}, "", "4444"},
		{[]string{"tag = 'best one'"}, "", "1111"},
		{[]string{"id ~ 2222*"}, "", "2222"},
		{[]string{"id = 2222"}, "", "2222"},
		{[]string{"id in [2222, 3333]"}, "", "3333 2222"},
		{[]string{"created > 3d"}, "", ""},
		{[]string{"created < 3d and seed = 2"}, "", "2222"},
		{[]string{"-"}, "2222\n b#1\t3333\n", "2222 4444 3333"},
		{[]string{"b#0", "-"}, "b", "3333 4444"},
		{[]string{"-"}, "", ""},
		{nil, "", ""},
	}
	for _, tt := range tests {
		got, err := f.Select(context.Background(), tt.selections, strings.NewReader(tt.stdin))
		if err != nil || ids(got) != tt.want {
			t.Errorf("Select(%q, %q) = %s, %v, want %s", tt.selections, tt.stdin, ids(got), err, tt.want)
		}
	}
	for _, selections := range [][]string{{"a", "none"}, {"1111"}, {"status ="}, {"-"}} {
		if got, err := f.Select(context.Background(), selections, strings.NewReader("none")); err == nil {
			t.Errorf("Select(%q) = %s, want an error", selections, ids(got))
		}
	}
	var syntax *SyntaxError
	if _, err := f.Select(context.Background(), []string{"status ="}, nil); !errors.As(err, &syntax) {
		t.Errorf("error %v, want *SyntaxError", err)
	}
}

// A run whose process is gone counts as interrupted, in filters too; @running selects
// it no more, although it still means it.
func TestStatusesOfNow(t *testing.T) {
	f := fixture(t)
	ctx := context.Background()
	killed, err := f.One(ctx, "b#0")
	if err == nil {
		_, err = f.DB.BeginAttempt(ctx, store.Attempt{Run: killed.ID, Kind: store.AttemptRun})
	}
	if err != nil {
		t.Fatal(err)
	}
	for selection, want := range map[string]string{
		"@running": "4444", "status = running": "4444", "status = interrupted": "3333", "b": "4444 3333",
	} {
		if got, err := f.Select(ctx, []string{selection}, nil); err != nil || ids(got) != want {
			t.Errorf("Select(%q) = %s, %v, want %s", selection, ids(got), err, want)
		}
	}
	if r, err := f.One(ctx, "b#0"); err != nil || r.Status != store.Interrupted {
		t.Errorf("b#0 is %s, %v", r.Status, err)
	}
	if runs, err := f.All(ctx, "@running"); err != nil || ids(runs) != "4444 3333" {
		t.Errorf("@running means %s, %v", ids(runs), err)
	}
}

// A list shows the values of its fields for each run, and counts what it leaves out.
func TestList(t *testing.T) {
	f := fixture(t)
	ctx := context.Background()
	fields := []store.Field{{Kind: store.FieldColumn, Name: "seed"}, {Kind: store.FieldColumn, Name: "status"}}
	filter, err := Schema{}.Parse("name = b and status = running")
	if err != nil {
		t.Fatal(err)
	}
	l, err := f.List(ctx, filter, fields)
	if err != nil || ids(l.Runs) != "4444" || fmt.Sprint(l.Values) != "[[1 running]]" || l.More != 0 {
		t.Errorf("List = %s, %v, %d more, %v", ids(l.Runs), l.Values, l.More, err)
	}
	l, err = f.Newest(ctx, fields, 2)
	if err != nil || ids(l.Runs) != "cafe 6666" || len(l.Values) != 2 || len(l.Values[0]) != 2 || l.More != 6 {
		t.Errorf("Newest = %s, %v, %d more, %v", ids(l.Runs), l.Values, l.More, err)
	}
	all, err := f.List(ctx, nil, fields)
	if err != nil || len(all.Runs) != 8 {
		t.Fatalf("all: %s, %v", ids(all.Runs), err)
	}
	all.Keep(append(l.Runs, store.Run{ID: 999}))
	if ids(all.Runs) != "cafe 6666" || len(all.Values) != 2 {
		t.Errorf("kept %s, %v", ids(all.Runs), all.Values)
	}
}

func ExampleParse() {
	_, err := Schema{}.Parse("status = done and stauts = failed")
	fmt.Println(strings.Split(err.Error(), "\n")[0])
	// Output: filter, column 19: no field "stauts"
}
