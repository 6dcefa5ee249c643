package main

import (
	"errors"

	"exp/harness/config"
	"exp/harness/stage"
	"exp/kernels/cpu"
)

// openBackend opens the device that a configuration asks for.
func (a *app) openBackend(r *config.Resolved) (*cpu.Backend, error) {
	return a.openCPU(cpu.Options{Threads: r.Run.Compute.Threads, Operand: stage.Operand(&r.Run)})
}

// openCPU opens the CPU, at the level that EXP_CPU names where o names none.
func (a *app) openCPU(o cpu.Options) (*cpu.Backend, error) {
	if o.Level == nil {
		level, err := a.defaultLevel()
		if err != nil {
			return nil, err
		}
		o.Level = &level
	}
	be, err := cpu.Open(o)
	if err != nil {
		return nil, &failure{Code: exitResource, Err: err}
	}
	return be, nil
}

// defaultLevel is the level at which a run computes. A level that there is not is bad
// usage; one that this machine does not run is a lack of this machine.
func (a *app) defaultLevel() (cpu.Level, error) {
	level, err := cpu.DefaultLevel(a.getenv)
	switch {
	case errors.Is(err, cpu.ErrUnsupported):
		return level, &failure{Code: exitResource, Err: err, Help: "unset EXP_CPU for the best"}
	case err != nil:
		return level, &failure{Code: exitUsage, Err: err, Help: "unset EXP_CPU for the best"}
	}
	return level, nil
}
