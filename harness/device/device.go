// Package device opens the backend that a run computes on. It alone knows which devices
// this program supports: a second device is another case in Open and Supports.
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
	// Level returns the instruction level: "avx512", "amx".
	Level() string
	// Threads returns the number of threads that share the work.
	Threads() int
	// Allocated returns the bytes in buffers and workspaces.
	Allocated() int64
	// PeakFLOPS returns floating-point operations per second in registers, measured
	// for about d on all threads.
	PeakFLOPS(d time.Duration) float64
	// ReadBandwidth returns bytes per second read from beyond a core's caches, measured
	// for about d on all threads.
	ReadBandwidth(d time.Duration) float64
	Close()
}

// CPU is the CPU's name in compute.device.
const CPU = "cpu"

// Supports reports whether this build computes on the named device.
func Supports(name string) bool { return name == CPU }

// Options select a device. The zero value is the CPU with all threads, in float32.
type Options struct {
	Name    string        // as in compute.device; "": the CPU
	Level   string        // of the CPU kernels; "": DefaultLevel
	Threads int           // 0 uses all
	Operand kernels.DType // operand type of matmuls; 0: f32
}

// Open opens a device. getenv reads the environment (see LevelVariable). The error is
// an *Error.
func Open(o Options, getenv func(string) string) (Device, error) {
	if o.Name == "" {
		o.Name = CPU
	}
	if !Supports(o.Name) {
		return nil, &Error{Err: fmt.Errorf("no device %s: this build runs on the CPU only", o.Name),
			code: codeResource}
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

// ForRun opens the device that a configuration selects.
func ForRun(c *config.Run, getenv func(string) string) (Device, error) {
	return Open(Options{Name: c.Compute.Device, Threads: c.Compute.Threads, Operand: stage.Operand(c)}, getenv)
}

// onCPU is the CPU backend as a Device.
type onCPU struct{ *cpu.Backend }

// Level implements Device.
func (d onCPU) Level() string { return d.Backend.Level().String() }

// Exit codes of the program that an Error carries.
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

// ExitCode is 2 for a level that does not exist and 7 for one that this machine lacks.
func (e *Error) ExitCode() int { return e.code }

// levelError returns the error for a bad level in the environment.
func levelError(err error) error {
	e := &Error{Err: err, hint: "unset " + LevelVariable + " to use the best level", code: codeUsage}
	if errors.Is(err, cpu.ErrUnsupported) {
		e.code = codeResource
	}
	return e
}
