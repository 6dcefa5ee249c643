package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"exp/experiments/store"
)

// Environment of a process that imports a bundle into a store.
const importBundle, importStore = "EXP_TEST_BUNDLE", "EXP_TEST_STORE"

func TestMain(m *testing.M) {
	if path := os.Getenv(importBundle); path != "" {
		os.Exit(importOnce(path, os.Getenv(importStore)))
	}
	os.Exit(m.Run())
}

func importOnce(path, dir string) int {
	db, err := store.Open(dir, store.Options{Create: true})
	if err == nil {
		defer db.Close()
		var b *Bundle
		if b, err = Open(path); err == nil {
			defer b.Close()
			_, err = b.Import(context.Background(), db, nil)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// However an import is killed, the store is whole, and holds all runs of the bundle
// or none; and the next import completes it.
func TestKilledImport(t *testing.T) {
	from, b := record(t, t.TempDir())
	maker{t, from}.steps(b, 300, 0.25) // the first three are there
	for i := range 10 {
		io := maker{t, from}.blob("x", "text", fmt.Sprint("blob ", i))
		maker{t, from}.stage(b, "eval.gen", fmt.Sprint("suite ", i), []store.IO{io}, nil)
	}
	b = b1(t, from, b.RID)
	path, _ := write(t, from, Options{}, b)
	want := read(t, path)
	dir := t.TempDir()
	took := time.Now()
	if out, err := process(path, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	whole := time.Since(took)
	const seed, kills = 7, 8
	r := rand.New(rand.NewPCG(seed, 0))
	done, killed := 0, 0
	for i := range kills {
		dir := filepath.Join(t.TempDir(), "store")
		p := process(path, dir)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(r.Float64() * float64(whole)))
		p.Process.Kill()
		if p.Wait() != nil {
			killed++
		}
		if _, err := os.Stat(filepath.Join(dir, "exp.db")); errors.Is(err, os.ErrNotExist) {
			continue
		}
		db := open(t, dir)
		if err := db.Check(context.Background()); err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
		runs, err := db.Runs(context.Background(), store.RunQuery{})
		if err != nil || len(runs) != 0 && len(runs) != 2 {
			t.Fatalf("kill %d: %d runs, %v", i, len(runs), err)
		}
		if len(runs) == 2 {
			done++
		}
		if _, err := load(t, path, db); err != nil {
			t.Fatalf("kill %d: the next import: %v", i, err)
		}
		again, _ := write(t, db, Options{}, b1(t, db, b.RID))
		if !bytes.Equal(want, read(t, again)) {
			t.Errorf("kill %d: exporting the imported runs gives another bundle", i)
		}
		db.Close()
	}
	t.Logf("%d of %d killed, %d had committed; an import takes %s", killed, kills, done, whole)
	if killed == 0 {
		t.Error("no import was killed")
	}
}

func process(path, dir string) *exec.Cmd {
	p := exec.Command(os.Args[0])
	p.Env = append(os.Environ(), importBundle+"="+path, importStore+"="+dir)
	return p
}
