// Package device opens the backend that a run computes on. No other package knows which
// devices this program has: a second one is another case of Open and of Supports.
package device

import (
	"errors"
	"fmt"
	"time"

	"exp/harness/config"
	"exp/harness/stage"
	"exp/kernels"
	"exp/kernels/cpu"
)

// Device is an open backend. The caller closes it.
type Device interface {
	kernels.Backend
	// Level names the instructions that it computes with: "avx512", "amx".
	Level() string
	// Threads returns the number of threads that share the work.
	Threads() int
	// Allocated returns the bytes that buffers and workspaces hold.
	Allocated() int64
	// PeakFLOPS returns floating-point operations per second in registers, measured
	// for about d on all threads.
	PeakFLOPS(d time.Duration) float64
	// ReadBandwidth returns bytes per second read from beyond the caches of a core,
	// measured for about d on all threads.
	ReadBandwidth(d time.Duration) float64
	Close()
}

// CPU is the name of the processor in compute.device.
const CPU = "cpu"

// Supports reports whether this build computes on the device with that name.
func Supports(name string) bool { return name == CPU }

// Options choose a device. The zero value is the processor with all its threads, in
// float32.
type Options struct {
	Name    string        // as compute.device has it; "" is the processor
	Level   string        // of the processor's kernels; "" is DefaultLevel
	Threads int           // 0 uses all
	Operand kernels.DType // type that matmuls multiply; 0 is f32
}

// Open opens a device. getenv reads the environment: see LevelVariable. The error is an
// *Error.
func Open(o Options, getenv func(string) string) (Device, error) {
	if o.Name == "" {
		o.Name = CPU
	}
	if !Supports(o.Name) {
		return nil, &Error{Err: fmt.Errorf("no device %s: this build runs on the CPU only", o.Name), code: codeResource}
	}
	if o.Level == "" {
		name, err := DefaultLevel(getenv)
		if err != nil {
			return nil, err
		}
		o.Level = name
	}
	level, err := cpu.ParseLevel(o.Level)
	if err != nil {
		return nil, &Error{Err: err, code: codeUsage}
	}
	be, err := cpu.Open(cpu.Options{Level: &level, Threads: o.Threads, Operand: o.Operand})
	if err != nil {
		return nil, &Error{Err: err, code: codeResource}
	}
	return onCPU{be}, nil
}

// ForRun opens the device that a configuration asks for.
func ForRun(c *config.Run, getenv func(string) string) (Device, error) {
	return Open(Options{Name: c.Compute.Device, Threads: c.Compute.Threads, Operand: stage.Operand(c)}, getenv)
}

// onCPU is the processor's backend as a Device.
type onCPU struct{ *cpu.Backend }

// Level implements Device.
func (d onCPU) Level() string { return d.Backend.Level().String() }

// Exit codes of the program, as Error carries them.
const (
	codeUsage    = 2
	codeResource = 7
)

// Error says why a device cannot be opened.
type Error struct {
	Err  error
	hint string
	code int
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Hint says what to do about it; it may be empty.
func (e *Error) Hint() string { return e.hint }

// ExitCode is 2 for a level that does not exist and 7 for what this machine lacks.
func (e *Error) ExitCode() int { return e.code }

// levelError is the error about the level that the environment names.
func levelError(err error) error {
	e := &Error{Err: err, hint: "unset " + LevelVariable + " for the best", code: codeUsage}
	if errors.Is(err, cpu.ErrUnsupported) {
		e.code = codeResource
	}
	return e
}
