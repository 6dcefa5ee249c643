package cli

import (
	"errors"
	"os"
	"path/filepath"

	"exp/experiments/store"
)

// storeDir is the default name of a store's directory.
const storeDir = ".exp"

// FindStore returns the store's directory: --store or EXP_STORE, else the nearest
// .exp in this directory or above. If the store does not exist, found is false and dir
// is where it would be created.
func (a *App) FindStore() (dir string, found bool, err error) {
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

// OpenStore opens the store for reading, and never changes or migrates it.
func (a *App) OpenStore() (*store.DB, error) { return a.OpenStoreWith(store.Options{ReadOnly: true}) }

// OpenStoreToWrite opens the store, and creates it if necessary.
func (a *App) OpenStoreToWrite() (*store.DB, error) {
	return a.OpenStoreWith(store.Options{Create: true})
}

// OpenStoreWith opens the store with options.
func (a *App) OpenStoreWith(o store.Options) (*store.DB, error) {
	dir, found, err := a.FindStore()
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
	a.Out.Store = dir
	return db, nil
}

// noStoreError says where it looked for a store: at the place that the user named, or
// here and above.
func (a *App) noStoreError(dir string) error {
	if a.settings.store == "" {
		return &Failure{Code: ExitNotFound, Err: errors.New("no experiment store here"),
			Help: "exp run CONFIG creates one; --store DIR or EXP_STORE names another place (looked for " + dir +
				" and above)"}
	}
	f := Failf(ExitNotFound, "no experiment store in %s", dir)
	f.Help = "exp run CONFIG creates it; --store DIR or EXP_STORE names another place"
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		f.Help = "it is a file; --store DIR or EXP_STORE names a directory"
	}
	return f
}

// With opens a store, calls f and closes it.
func With(open func() (*store.DB, error), f func(db *store.DB) error) error {
	db, err := open()
	if err != nil {
		return err
	}
	return errors.Join(f(db), db.Close())
}
