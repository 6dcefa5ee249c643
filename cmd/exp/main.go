// Command exp runs reinforcement learning experiments with language models,
// records them, and compares them.
//
// This package holds the commands, one per file. A command consists of its flags and
// help, one call into the packages below, and the output of the result; its constructor
// is in the list in this file. cmd/exp/cli is the frame around them, and its package
// comment says how to write one. errors.go maps the errors of the packages below to exit
// codes.
package main

import (
	"os"
	"os/signal"
	"syscall"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/harness/cluster"
	harness "exp/harness/run"
	"exp/sandbox"
)

func main() {
	if code, ok := sandbox.Enter(); ok { // this process was started as a sandbox
		os.Exit(code)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if os.Getenv(cluster.OneSignal) != "" {
		signals = onlyFirst(signals)
	}
	if code, ok := enterRank(os.Args, signals); ok { // this process was started as a rank
		os.Exit(code)
	}
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

// onlyFirst passes on one signal. A batch system signals every process of a job, and the
// job asks its run to stop too; together they must not end the run at once.
func onlyFirst(all <-chan os.Signal) chan os.Signal {
	first := make(chan os.Signal, 1)
	go func() {
		first <- <-all
		for range all {
		}
	}()
	return first
}

// program is exp with these commands.
func program(list func(*app) []*cli.Command) cli.Program {
	return cli.Program{
		Commands: func(a *cli.App) []*cli.Command { return list(&app{App: a}) },
		Known:    known,
		Examples: programExamples,
		Topics:   []cli.Topic{glossary()},
	}
}

// app is one execution of the program. Several commands share its methods.
type app struct {
	*cli.App
	ranks     *harness.Ranks // nil: this process computes alone
	rankBench *measuring     // nil: it is not a rank of exp bench
}

// commands lists the commands in the order of help, before the frame's own. To add
// a command, write its constructor and list it here.
func commands(a *app) []*cli.Command {
	return []*cli.Command{
		runCommand(a),
		jobsCommand(a),
		collectCommand(a),
		jobCommand(a),
		resumeCommand(a),
		verifyCommand(a),
		whyCommand(a),
		lsCommand(a),
		showCommand(a),
		metricsCommand(a),
		samplesCommand(a),
		problemsCommand(a),
		diffCommand(a),
		compareCommand(a),
		evalCommand(a),
		inspectCommand(a),
		mergeCommand(a),
		convertCommand(a),
		gradeCommand(a),
		diversityCommand(a),
		suiteCommand(a),
		tokenizerCommand(a),
		hubCommand(a),
		reportCommand(a),
		figureCommand(a),
		chatCommand(a),
		endpointCommand(a),
		serveCommand(a),
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

// programExamples are the first commands for a newcomer.
const programExamples = `exp run configs/smoke_cpu.yaml # train and evaluate a tiny model in seconds
exp show @last # its results
exp run configs/countdown_cpu_ppo.yaml configs/countdown_cpu_flowrl.yaml --seeds 0-2 # two arms
exp compare countdown-ppo countdown-flowrl # which is better, and how certain is that
exp report countdown-ppo countdown-flowrl --out report # figures and tables`
