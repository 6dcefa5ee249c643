package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"exp/experiments/store"
	"exp/harness/config"
)

// Each rank that computes on a GPU gets one, of the kind that the generic resources name.
func TestGPUOfRank(t *testing.T) {
	for _, tt := range []struct{ device, gres, want, rest string }{
		{"cpu", "", "", ""},
		{"cpu", "gpu:1", "", "gpu:1"},
		{"cuda", "", "1", ""},
		{"cuda:2", "gpu:4", "1", ""},
		{"cuda", "ssd:1,gpu:a100:4", "a100:1", "ssd:1"},
		{"auto", "gpu", "1", ""},
		{"auto", "ssd:1", "", "ssd:1"},
	} {
		var c config.Run
		c.Compute.Device, c.Cluster.Slurm.Gres = tt.device, tt.gres
		b := Batch{Options: c.Cluster, GPU: gpuOfRank(&c)}
		if b.GPU != tt.want || b.gres() != tt.rest {
			t.Errorf("%s, %q: %q and %q, want %q and %q", tt.device, tt.gres, b.GPU, b.gres(), tt.want, tt.rest)
		}
	}
}

// A store that ranks on several nodes read lies in the spool, and its database on the node; nothing
// remains of it.
func TestStoreOfRanks(t *testing.T) {
	node := t.TempDir()
	a := &Attempt{Entry: Entry{ID: "x", Ranks: 4, Store: node}, Spool: Spool{t.TempDir()}, Nodes: 2, Log: t.Output()}
	left := a.Spool.Path("stores/x/runs/killed")
	if err := os.MkdirAll(left, 0o777); err != nil {
		t.Fatal(err)
	}
	dir, release, err := a.makeStore()
	if err != nil || dir != a.Spool.Path("stores/x") {
		t.Fatal(dir, err)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("it has what a killed attempt left")
	}
	db, err := store.Open(dir, store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{database, database + "-wal"} {
		if found, err := filepath.Glob(filepath.Join(node, "exp-*", file)); err != nil || len(found) != 1 {
			t.Errorf("%s: %q, %v", file, found, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	release()
	for _, parent := range []string{node, a.Spool.Path("stores")} {
		if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
			t.Errorf("%s: %v, %v", parent, left, err)
		}
	}
	a.Nodes = 1
	dir, release, err = a.makeStore()
	if err != nil || filepath.Dir(dir) != node {
		t.Fatal(dir, err)
	}
	release()
}
