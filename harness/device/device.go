// Package device opens the backend that a run computes on. It alone knows which devices
// this program supports: the CPU, and the GPUs that the CUDA driver lists.
package device

import (
	"errors"
	"fmt"

	"exp/harness/config"
	"exp/harness/stage"
	"exp/kernels"
	"exp/kernels/cpu"
)

// Device is an open backend. The caller closes it.
type Device interface {
	kernels.Backend
	// Where says for people what computes: "2 threads", "cuda:0, NVIDIA H200".
	Where() string
	// Allocated returns the bytes in buffers and workspaces.
	Allocated() int64
	// TakePeak returns the largest value of Allocated since the last call and starts over.
	TakePeak() int64
	Close()
}

// Options select a device. The zero value is the CPU with all threads, in float32.
type Options struct {
	Name    string        // as in compute.device; "": the CPU
	Level   string        // of the CPU kernels; "": DefaultLevel
	Threads int           // of the CPU; 0 uses all
	Operand kernels.DType // operand type of matmuls; 0: f32
	// Numerics is a class as in compute.numerics that has such operands; "": the device's own.
	Numerics string
}

// Open opens a device. getenv reads the environment (see LevelVariable). The error is
// an *Error.
func Open(o Options, getenv func(string) string) (Device, error) {
	c, err := Choose(o.Name, o.Numerics)
	if err != nil {
		return nil, err
	}
	if c.GPU != nil {
		return openGPU(c.GPU, o.onGPU())
	}
	p, err := OpenCPU(o, getenv)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// onGPU returns the numerics class for a GPU.
func (o Options) onGPU() string {
	switch {
	case o.Numerics == config.MatrixNumerics:
		return o.Numerics
	case o.Operand == kernels.BF16:
		return "cpu/bf16"
	}
	return "cpu/fma"
}

// ForRun opens the device that a configuration selects.
func ForRun(c *config.Run, getenv func(string) string) (Device, error) {
	return Open(Options{Name: c.Compute.Device, Threads: c.Compute.Threads, Operand: stage.Operand(c),
		Numerics: c.Compute.Numerics}, getenv)
}

// OnCPU is the CPU as a Device. It can also measure the machine.
type OnCPU struct{ *cpu.Backend }

// OpenCPU opens the CPU, whatever o.Name says. The error is an *Error.
func OpenCPU(o Options, getenv func(string) string) (OnCPU, error) {
	if o.Level == "" {
		name, err := DefaultLevel(getenv)
		if err != nil {
			return OnCPU{}, err
		}
		o.Level = name
	}
	level, err := cpu.ParseLevel(o.Level)
	if err != nil {
		return OnCPU{}, &Error{Err: err, code: codeUsage}
	}
	be, err := cpu.Open(cpu.Options{Level: &level, Threads: o.Threads, Operand: o.Operand,
		Matrix: o.Numerics == config.MatrixNumerics})
	if err != nil {
		return OnCPU{}, &Error{Err: err, code: codeResource}
	}
	return OnCPU{be}, nil
}

// ResidentOnCPU returns the memory that a buffer of so many bytes takes on the CPU if the first used ones are read or
// written.
func ResidentOnCPU(bytes, used int) int { return cpu.Resident(bytes, used) }

// Level returns the instruction level: "avx512", "amx".
func (d OnCPU) Level() string { return d.Backend.Level().String() }

// Where implements Device.
func (d OnCPU) Where() string {
	if n := d.Threads(); n != 1 {
		return fmt.Sprintf("%d threads", n)
	}
	return "1 thread"
}

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

// Hint suggests what to do; it may be empty.
func (e *Error) Hint() string { return e.hint }

// ExitCode is 2 for a level that does not exist and 7 for something that this machine lacks.
func (e *Error) ExitCode() int { return e.code }

// levelError returns the error for a bad level in the environment.
func levelError(err error) error {
	e := &Error{Err: err, hint: "unset " + LevelVariable + " to use the best level", code: codeUsage}
	if errors.Is(err, cpu.ErrUnsupported) {
		e.code = codeResource
	}
	return e
}
