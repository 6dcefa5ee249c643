package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"exp/experiments/store"
)

// storeDir is the name of a store's directory where no other is asked for.
const storeDir = ".exp"

// findStore returns the store's directory: --store or EXP_STORE, else the nearest
// .exp in this directory or above. found is false if there is none; dir is then
// where one would be made.
func (a *app) findStore() (dir string, found bool, err error) {
	if a.settings.store != "" {
		_, err := os.Stat(filepath.Join(a.settings.store, "exp.db"))
		return a.settings.store, err == nil, nil
	}
	here, err := os.Getwd()
	if err != nil {
		return "", false, err
	}
	for at := here; ; at = filepath.Dir(at) {
		dir := filepath.Join(at, storeDir)
		if _, err := os.Stat(filepath.Join(dir, "exp.db")); err == nil {
			return dir, true, nil
		}
		if at == filepath.Dir(at) {
			return filepath.Join(here, storeDir), false, nil
		}
	}
}

// openStore opens the store to read from. Commands that only read never change or
// migrate it.
func (a *app) openStore() (*store.DB, error) { return a.open(store.Options{ReadOnly: true}) }

// openStoreToWrite opens the store and makes it if there is none.
func (a *app) openStoreToWrite() (*store.DB, error) { return a.open(store.Options{Create: true}) }

func (a *app) open(o store.Options) (*store.DB, error) {
	dir, found, err := a.findStore()
	if err != nil {
		return nil, err
	}
	if !found && !o.Create {
		return nil, a.noStoreError(dir)
	}
	o.Rollback = a.journal == "rollback" && !o.ReadOnly
	db, err := store.Open(dir, o)
	if err != nil {
		return nil, err
	}
	a.out.store = dir
	return db, nil
}

// noStoreError says where a store was looked for: at the one place that the user
// named, or here and above.
func (a *app) noStoreError(dir string) error {
	if a.settings.store == "" {
		return &failure{Code: exitNotFound, Err: errors.New("there is no experiment store here"),
			Help: "exp run CONFIG makes one; --store DIR or EXP_STORE names another place (looked for " + dir + " and above)"}
	}
	f := failf(exitNotFound, "there is no experiment store in %s", dir)
	f.Help = "exp run CONFIG makes one there; --store DIR or EXP_STORE names another place"
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		f.Help = "it is a file; --store DIR or EXP_STORE names a directory"
	}
	return f
}

// withStore opens the store for reading, calls f and closes it.
func (a *app) withStore(f func(db *store.DB) error) error {
	db, err := a.openStore()
	if err != nil {
		return err
	}
	return errors.Join(f(db), db.Close())
}

// missing reports whether err is about a file that is not there.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
