package run

import (
	"context"
	"errors"

	"exp/harness/config"
	"exp/harness/stage"
	"exp/sandbox"
)

// sandboxLack says why this machine cannot run programs; nil if it can. It runs a trial
// program.
func sandboxLack(c *config.Run) *sandbox.LevelError {
	cfg := stage.SandboxConfig(c)
	level, probes, err := sandbox.Check(context.Background(), cfg)
	var broken *sandbox.LevelError
	switch {
	case errors.As(err, &broken):
		return broken
	case err == nil && level.AtLeast(cfg.Require):
		return nil
	}
	lack := &sandbox.LevelError{Required: cfg.Require, Have: level}
	for _, p := range probes {
		if !p.OK {
			lack.Probes = append(lack.Probes, p)
		}
	}
	return lack
}

// sandboxFacts returns what an attempt's record says about the sandbox: its level, the
// result of each probe, and the interpreter.
func sandboxFacts(c *config.Run) map[string]any {
	level, probes, err := sandbox.Check(context.Background(), stage.SandboxConfig(c))
	facts := map[string]any{"level": level}
	for _, p := range probes {
		facts[p.Name] = p.Text
	}
	if err != nil {
		facts["error"] = err.Error()
	}
	return facts
}
