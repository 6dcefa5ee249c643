// Command exp runs reinforcement learning experiments with language models,
// records them, and compares them.
//
// This package is the commands. cmd/exp/cli is the frame around them, and its
// package comment says how to write one. A command has a file of its own, named for
// it: its flags and help, one call into the packages below, and how the result is
// shown. Its constructor stands in the list in this file. errors.go says which error
// of the packages below is which exit code.
package main

import (
	"os"
	"os/signal"
	"syscall"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/sandbox"
)

func main() {
	if code, ok := sandbox.Enter(); ok { // this process was started to hold programs
		os.Exit(code)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	os.Exit(cli.Run(cli.System{
		Args:    os.Args,
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
		Getenv:  os.Getenv,
		Clock:   term.SystemClock(),
		Signals: signals,
	}, program(commands)))
}

// program is exp with these commands.
func program(list func(*app) []*cli.Command) cli.Program {
	return cli.Program{
		Commands: func(a *cli.App) []*cli.Command { return list(&app{a}) },
		Known:    known,
		Examples: programExamples,
		Topics:   []cli.Topic{glossary()},
	}
}

// app is one execution of the program, with what several commands need beyond the
// frame.
type app struct{ *cli.App }

// commands lists the commands in the order in which help shows them, before those
// of the frame. A command is added by writing its constructor and naming it here.
func commands(a *app) []*cli.Command {
	return []*cli.Command{
		runCommand(a),
		resumeCommand(a),
		verifyCommand(a),
		whyCommand(a),
		lsCommand(a),
		showCommand(a),
		metricsCommand(a),
		samplesCommand(a),
		diffCommand(a),
		compareCommand(a),
		evalCommand(a),
		inspectCommand(a),
		gradeCommand(a),
		suiteCommand(a),
		tokenizerCommand(a),
		reportCommand(a),
		logCommand(a),
		graphCommand(a),
		queryCommand(a),
		stopCommand(a),
		tagCommand(a),
		noteCommand(a),
		pinCommand(a),
		rmCommand(a),
		restoreCommand(a),
		gcCommand(a),
		fsckCommand(a),
		exportCommand(a),
		importCommand(a),
		configCommand(a),
		doctorCommand(a),
		benchCommand(a),
		sandboxCommand(a),
	}
}

// programExamples are what a newcomer may type first.
const programExamples = `exp run configs/smoke_cpu.yaml # train and evaluate a tiny model in seconds
exp show @last # what came of it
exp run configs/countdown_cpu_ppo.yaml configs/countdown_cpu_flowrl.yaml --seeds 0-2 # two arms
exp compare countdown-ppo countdown-flowrl # which is better, and how sure that is
exp report countdown-ppo countdown-flowrl --out report # figures and tables`
