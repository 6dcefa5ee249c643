package main

import (
	"exp/cmd/exp/cli"
	"exp/experiments/store"
)

// action is the body of a command that works on a store.
type action func(c *cli.Context, db *store.DB, args []string) error

// reads returns an Action with least to most arguments (see cli.WithArgs) that reads the store.
func (a *app) reads(least, most int, do action) cli.ActionFunc {
	return a.changesIf(func(*cli.Context) bool { return false }, least, most, do)
}

// changes is reads for a command that changes the store.
func (a *app) changes(least, most int, do action) cli.ActionFunc {
	return a.changesIf(func(*cli.Context) bool { return true }, least, most, do)
}

// changesIf is reads for a command that changes the store under some flags.
func (a *app) changesIf(writes func(*cli.Context) bool, least, most int, do action) cli.ActionFunc {
	return cli.WithArgs(least, most, func(c *cli.Context, args []string) error {
		return cli.With(a.opener(writes(c)), func(db *store.DB) error { return do(c, db, args) })
	})
}

// opener opens an existing store, for reading or for writing.
func (a *app) opener(writes bool) func() (*store.DB, error) {
	if writes {
		return func() (*store.DB, error) { return a.OpenStoreWith(store.Options{}) }
	}
	return a.OpenStore
}

// ofRun makes an action of the run that the first argument names.
func (a *app) ofRun(do func(c *cli.Context, db *store.DB, run store.Run) error) action {
	return func(c *cli.Context, db *store.DB, args []string) error {
		run, err := a.oneRun(c.Context, db, args[0])
		if err != nil {
			return err
		}
		return do(c, db, run)
	}
}
