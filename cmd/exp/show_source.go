package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/recorded"
	"exp/experiments/store"
)

// writeSources writes the sources that trained a run to a folder, and warns of stages
// that were executed by others.
func (a *app) writeSources(ctx context.Context, db *store.DB, run store.Run, dir string) error {
	out, err := recorded.WriteSources(ctx, db, run, dir)
	switch {
	case errors.Is(err, store.ErrNotFound):
		f := cli.Failf(cli.ExitNotFound, "the store has no sources of run %s", run.RID.Short())
		f.Help = "they are kept once a stage of the run was executed"
		return f
	case errors.Is(err, recorded.ErrOccupied):
		f := cli.Usagef("--source %w", err)
		f.Help = "name a folder that does not exist or is empty"
		return f
	case err != nil:
		return err
	}
	if len(out.Others) > 0 {
		a.Warn("executed by other sources than these: %s (exp show %s --stages has the code of each)",
			strings.Join(out.Others, ", "), run.RID.Short())
	}
	return a.Out.PrintDocument(cli.Document{Schema: "exp.sources/1", Data: out, Human: func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%d files of run %s (code %s, %s) are in %s\n", out.Files, run.RID.Short(),
			run.Code.Short(), out.Go, dir)
		return err
	}})
}
