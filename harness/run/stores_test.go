package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/plan"
	"exp/kernels/cpu"
)

// stores is the folder of the stores that tests copy, made once per process; TestMain removes it.
var stores = filepath.Join(os.TempDir(), fmt.Sprintf("exp-run-stores-%d", os.Getpid()))

// emptyStore is a store without runs that keeps the sources of all stages.
var emptyStore = sync.OnceValues(func() (dir string, err error) {
	dir = filepath.Join(stores, "empty")
	db, err := store.Open(dir, store.Options{Create: true})
	if err != nil {
		return "", err
	}
	codes, err := plan.Sources()
	if err == nil {
		x := execution{Runner: &Runner{DB: db}, p: &plan.Run{Code: codes}}
		err = x.keepSources(context.Background())
	}
	if err != nil {
		db.Close()
		return "", err
	}
	return dir, db.Close()
})

// startedStore is emptyStore after a run of seed 0, named start, that ended before training.
var startedStore = sync.OnceValues(func() (dir string, err error) {
	from, err := emptyStore()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(stores, "started")
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		return "", err
	}
	db, err := store.Open(dir, store.Options{})
	if err != nil {
		return "", err
	}
	if err := start(db); err != nil {
		db.Close()
		return "", err
	}
	return dir, db.Close()
})

// start executes the stages of the smoke recipe before training.
func start(db *store.DB) error {
	be, err := cpu.Open(cpu.Options{Threads: 2})
	if err != nil {
		return err
	}
	defer be.Close()
	codes, err := plan.Sources()
	if err != nil {
		return err
	}
	r, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: []string{"name=start", "train.steps=1"}})
	if err != nil {
		return err
	}
	p, err := plan.New(r, 0, be.Class(), codes)
	if err != nil {
		return err
	}
	runner := Runner{DB: db, Backend: be, Watch: &quiet{}, Build: "test", Options: Options{Until: config.SFT}}
	_, err = runner.Execute(context.Background(), p)
	return err
}
