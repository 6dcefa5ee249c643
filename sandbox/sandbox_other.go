//go:build !(linux && (amd64 || arm64))

package sandbox

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// Pool runs programs. On this system it cannot: isolation needs Linux.
type Pool struct{ cfg Config }

func unsupported() *LevelError {
	return &LevelError{Required: Namespaces, Have: Unusable,
		Probes: []Probe{{Name: "system", Text: "none on " + runtime.GOOS + "/" + runtime.GOARCH,
			Help: "use Linux on amd64 or arm64"}}}
}

// Enter does nothing here.
func Enter() (code int, ok bool) { return 0, false }

// Open returns a *LevelError.
func Open(context.Context, Config) (*Pool, error) { return nil, unsupported() }

// Check reports that isolation is missing here.
func Check(context.Context, Config) (Level, []Probe, error) {
	return Unusable, unsupported().Probes, nil
}

// PythonVersion returns a *LevelError.
func PythonVersion(context.Context) (string, error) { return "", unsupported() }

// Level returns Unusable.
func (*Pool) Level() Level { return Unusable }

// Probes returns none.
func (*Pool) Probes() []Probe { return nil }

// Slots returns 0.
func (*Pool) Slots() int { return 0 }

// InfraErrors returns 0.
func (*Pool) InfraErrors() (int64, error) { return 0, nil }

// Python returns "".
func (*Pool) Python() string { return "" }

// Interpreter returns "".
func (*Pool) Interpreter() string { return "" }

// CPUTime returns 0.
func (*Pool) CPUTime() (time.Duration, error) { return 0, nil }

// Close does nothing.
func (*Pool) Close() error { return nil }

// SelfTest always fails here.
func (*Pool) SelfTest(context.Context, func(Outcome)) error { return unsupported() }

// Toolchains returns a failed probe per language.
func Toolchains(context.Context) (list []Probe) {
	for _, name := range Languages()[1:] {
		list = append(list, Probe{Name: name, Text: "programs run only on Linux"})
	}
	return list
}

// made is an executable program.
type made struct {
	executable []byte
	failed     *Run
	view       string
}

func (*Pool) make(context.Context, Request) (made, error) {
	return made{}, errors.New("no sandbox on this system")
}

func (*Pool) executePair(context.Context, job, job) (c, t Run, err error) {
	return c, t, errors.New("no sandbox on this system")
}

func (*Pool) sharesVisits() bool { return false }

func (*Pool) execute(context.Context, job) (Run, error) {
	return Run{}, errors.New("no sandbox on this system")
}
