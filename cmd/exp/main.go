// Command exp runs reinforcement learning experiments with language models,
// records them, and compares them.
//
// This package is the command line and nothing else. main hands the process to
// run and exits with the code that comes back; app.go is the frame that every
// command shares (globals, signals, panics, errors), argv.go puts the arguments
// into the order that the parser wants, output*.go print one result in every
// format, exit.go says which error is which exit code, and each command has a
// file of its own with a constructor that stands in the list in app.go.
package main

import (
	"os"
	"os/signal"
	"syscall"

	"exp/cmd/exp/term"
	"exp/sandbox"
)

func main() {
	if code, ok := sandbox.Enter(); ok { // this process was started to hold programs
		os.Exit(code)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	os.Exit(run(system{
		args:    os.Args,
		stdin:   os.Stdin,
		stdout:  os.Stdout,
		stderr:  os.Stderr,
		getenv:  os.Getenv,
		clock:   term.SystemClock(),
		signals: signals,
	}, commands))
}
