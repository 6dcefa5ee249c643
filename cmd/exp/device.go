package main

import (
	"context"

	"exp/cmd/exp/cli"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/device"
)

// deviceFlag returns --device; otherwise is its default, for the help.
func deviceFlag(otherwise string) cli.Flag {
	return &cli.StringFlag{Name: "device", Usage: "compute on `DEVICE`: cpu, cuda, cuda:N, auto (compute.device)",
		DefaultText: otherwise}
}

// computeFlags are the flags of commands that execute recorded runs.
func computeFlags() []cli.Flag {
	const recorded = "recorded"
	return []cli.Flag{
		deviceFlag(recorded),
		&cli.IntFlag{Name: "threads", Usage: "use `N` threads, 0 for all (compute.threads)", DefaultText: recorded},
	}
}

// computeValues returns the flags --device and --threads as settings.
func computeValues(c *cli.Context) (values []config.Value) {
	if c.IsSet("device") {
		values = append(values, config.Value{Path: "compute.device", Value: c.String("device"), From: "--device"})
	}
	if c.IsSet("threads") {
		values = append(values, config.Value{Path: "compute.threads", Value: c.Int("threads"), From: "--threads"})
	}
	return values
}

func deviceCandidates() []cli.Candidate {
	return cli.Candidates([]string{device.CPU, device.CUDA, device.CUDA + ":", device.Auto})
}

// completesRunAndDevice makes the BashComplete of a command that executes one recorded run.
func (a *app) completesRunAndDevice() cli.BashCompleteFunc {
	return a.completesRuns(1, true, func(_ context.Context, _ *store.DB, w cli.Word) []cli.Candidate {
		if w.Flag == "device" {
			return deviceCandidates()
		}
		return nil
	})
}
