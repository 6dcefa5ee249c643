package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/experiments/bundle"
	"exp/experiments/ident"
	"exp/experiments/store"
)

// node is the store of a node.
type node struct {
	t  *testing.T
	db *store.DB
}

func openNode(t *testing.T) node {
	t.Helper()
	db, err := store.Open(filepath.Join(t.TempDir(), "store"), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return node{t, db}
}

func (n node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func digestOf(text string) ident.Digest { return ident.Sum([]byte(text)) }

// run records a run that has or reuses one stage with an output.
func (n node) run(name, stage, output string, end store.Status) store.Run {
	n.t.Helper()
	ctx := context.Background()
	r, _, err := n.db.EnsureRun(ctx, store.NewRun{RID: digestOf("rid" + name), XID: digestOf("xid" + name), Name: name,
		Config: store.Config{Digest: digestOf("config" + name), JSON: `{"name":"` + name + `"}`}})
	n.must(err)
	at, err := n.db.BeginAttempt(ctx, store.Attempt{Run: r.ID, Kind: store.AttemptRun})
	n.must(err)
	s := store.Stage{SID: digestOf("sid" + stage), Run: r.ID, Kind: "init", Code: digestOf("code")}
	hit, err := n.db.Hit(ctx, s.SID)
	n.must(err)
	if hit != nil {
		_, err = n.db.ReuseStage(ctx, s, hit)
		n.must(err)
	} else {
		s, err = n.db.BeginStage(ctx, s)
		n.must(err)
		d, err := n.db.Blobs.PutBytes([]byte(output))
		n.must(err)
		n.must(n.db.FinishStage(ctx, s.ID, []store.IO{{Role: "weights", Kind: "weights", Digest: d, Size: int64(len(output))}},
			store.StageResult{}, nil))
	}
	n.must(n.db.EndAttempt(ctx, at.ID, end, 0))
	r, err = n.db.Run(ctx, r.RID)
	n.must(err)
	return r
}

// publish puts a run's bundle into the spool, as its job does.
func (n node) publish(spool Spool, r store.Run) {
	n.t.Helper()
	_, err := bundle.Write(context.Background(), n.db, spool.Path(BundlePath(r.RID.String())), []store.Run{r}, bundle.Options{})
	n.must(err)
	n.submit(spool, r, Done)
}

func (n node) submit(spool Spool, r store.Run, status string) {
	n.t.Helper()
	id := r.RID.String()
	n.must(spool.note(Submitted{Entry{ID: id, Name: r.Name, RID: r.RID}, "1_0"}))
	n.must(writeJSON(spool.Path(StatePath(id)), State{ID: id, RID: r.RID, Number: "1_0", Status: status}))
}

// names lists the names of jobs.
func names(list []Submitted) (out []string) {
	for _, j := range list {
		out = append(out, j.Name)
	}
	return out
}

// Damaged and divergent bundles hold up no other run; a run waits for the one whose stage it
// reuses.
func TestCollect(t *testing.T) {
	spool := Spool{filepath.Join(t.TempDir(), "a [spool]")} // no pattern
	if err := spool.Make(); err != nil {
		t.Fatal(err)
	}
	one, two, home := openNode(t), openNode(t), openNode(t)
	one.publish(spool, one.run("a damaged", "x", "x", store.Done))
	one.publish(spool, one.run("b first", "y", "y", store.Done))
	two.publish(spool, two.run("c divergent", "y", "other bits", store.Done))
	one.submit(spool, one.run("d still running", "z", "z", store.Interrupted), Running)
	one.publish(spool, one.run("e waits for d", "z", "", store.Done))
	one.publish(spool, one.run("f reuses b", "y", "", store.Done))
	path := spool.Path(BundlePath(digestOf("rida damaged").String()))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cut := append(slices.Clone(whole[:len(whole)/2]), whole[len(whole)/2+1:]...)
	if err := os.WriteFile(path, cut, 0o644); err != nil {
		t.Fatal(err)
	}
	collect := func() *Collected {
		t.Helper()
		got, err := Collect(context.Background(), home.db, spool)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Waiting) != 1 || got.Waiting[0].Name != "e waits for d" || got.Left != 1 {
			t.Fatalf("waiting: %+v, left: %d", got.Waiting, got.Left)
		}
		if why := got.Waiting[0].Why(); why != "is done, but waits for d still running, whose stages it reuses and which is running" {
			t.Errorf("why: %q", why)
		}
		var diverged *store.DivergenceError
		if len(got.Failed) != 2 || got.Failed[0].Name != "a damaged" || got.Failed[1].Name != "c divergent" ||
			!errors.Is(got.Failed[0].Err, bundle.ErrCorrupt) || !errors.As(got.Failed[1].Err, &diverged) ||
			!errors.Is(got.Err(), bundle.ErrCorrupt) || !errors.As(got.Err(), &diverged) {
			t.Errorf("failed: %v", got.Err())
		}
		return got
	}
	if added := names(collect().Added); !slices.Equal(added, []string{"b first", "f reuses b"}) {
		t.Errorf("added: %q", added)
	}
	// The damage is repaired and the last job ends: only the divergence stays.
	if again := collect(); len(again.Added) != 0 {
		t.Errorf("added again: %q", names(again.Added))
	}
	if err := os.WriteFile(path, whole, 0o644); err != nil {
		t.Fatal(err)
	}
	one.publish(spool, one.run("d still running", "z", "", store.Done))
	got, err := Collect(context.Background(), home.db, spool)
	if err != nil || len(got.Failed) != 1 || len(got.Waiting)+got.Left != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if added := names(got.Added); !slices.Equal(added, []string{"a damaged", "d still running", "e waits for d"}) {
		t.Errorf("added: %q", added)
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	if got, err := Collect(stopped, home.db, spool); !errors.Is(err, context.Canceled) || len(got.Failed) != 0 {
		t.Errorf("after Ctrl-C: %+v, %v", got, err)
	}
}

// A damaged file of a spool is named, with what to do.
func TestDamagedSpool(t *testing.T) {
	spool := Spool{t.TempDir()}
	if err := spool.Make(); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]string{"submitted/a.json": "remove the file; the same exp run … --on then submits the missing jobs",
		"state/a.json": "use another spool"} {
		if err := os.WriteFile(spool.Path(name), []byte(`{"id": "a`), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := spool.Submitted()
		if strings.HasPrefix(name, "state/") {
			_, err = spool.State("a")
		}
		var damaged *DamagedError
		if !errors.As(err, &damaged) || damaged.ExitCode() != 4 || !strings.Contains(err.Error(), spool.Path(name)+" is damaged") || !strings.Contains(damaged.Hint(), do) {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Remove(spool.Path(name)); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := spool.Submitted(); len(list) != 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}
