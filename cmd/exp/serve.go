package main

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"exp/cmd/exp/cli"
	"exp/experiments/store"
	"exp/reports/serve"
)

func serveCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "serve",
		Category: "Results",
		Usage:    "show the store in a browser, live",
		Description: "Serves pages about the store until Ctrl-C: the runs with the filters of exp ls; a run with " +
			"its curves, phases, log and completions, live while it runs; curves of several arms on one axis, " +
			"with means and intervals over seeds; comparisons and reports; problems where runs differ; " +
			"lineage; benchmarks. The pages change nothing and need no network.\n" +
			"Open the address that it prints: it has a token, new at every start, that keeps other programs and " +
			"other sites out. Only this machine can reach the pages. From another machine, forward the port: ssh " +
			"-L 8080:127.0.0.1:8080 HOST. --public lets other machines reach them, without encryption.\n" +
			"Keys: / goes to the filter, j and k through the rows, x chooses one, ? lists all keys.",
		UsageText: strings.Join([]string{
			"exp serve # the nearest store, on a free port",
			"exp serve --addr 8080 # a fixed port",
			"exp serve --store /data/exp # another store",
			"exp serve --addr 0.0.0.0:8080 --public # for other machines too",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "addr", Usage: "listen on `PORT` or HOST:PORT",
				DefaultText: "127.0.0.1, any free port"},
			&cli.BoolFlag{Name: "public", Usage: "allow a HOST that other machines can reach"},
		},
		Action: a.reads(0, 0, a.serve),
	}
}

// serve answers browsers until the command is stopped, which is its normal end.
func (a *app) serve(c *cli.Context, db *store.DB, _ []string) error {
	public := c.Bool("public")
	s, err := serve.New(serve.Options{DB: db, Clock: a.Clock.Now, Public: public})
	if err != nil {
		return err
	}
	addr := c.String("addr")
	l, err := serve.Listen(addr, public)
	var reachable *serve.PublicError
	switch {
	case errors.As(err, &reachable):
		return err
	case errors.Is(err, syscall.EADDRINUSE):
		f := cli.Failf(cli.ExitResource, "--addr %s is in use", addr)
		f.Help = "without --addr, any free port is taken"
		return f
	case err != nil:
		return a.Usagef("--addr %s: %w", addr, err)
	}
	a.Note("%s in a browser; Ctrl-C ends it", db.Dir())
	if _, err := fmt.Fprintln(a.Out.W, s.Address(l)); err != nil {
		l.Close()
		return err
	}
	return s.Serve(c.Context, l)
}
