package device

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"exp/harness/config"
)

// The names in compute.device. A GPU with another number is "cuda:N".
const (
	CPU  = "cpu"
	CUDA = "cuda" // the first GPU
	Auto = "auto" // the first GPU that can compute the run, else the CPU
)

// Choice is the device that a name selects on this machine.
type Choice struct {
	GPU *GPU   // nil: the CPU
	Why string // what Auto chose, and why; empty for a device chosen by name
}

// OfRun is Choose for a configuration.
func OfRun(c *config.Run) (Choice, error) { return Choose(c.Compute.Device, c.Compute.Numerics) }

// UsesGPU reports whether a configuration computes on a GPU, also on one that is missing here.
func UsesGPU(c *config.Run) bool {
	choice, err := OfRun(c)
	return err != nil || choice.GPU != nil
}

// UsesTensorCores reports whether a configuration computes products on a GPU's tensor cores.
func UsesTensorCores(c *config.Run) bool {
	return UsesGPU(c) && c.Compute.Numerics == config.MatrixNumerics
}

// Choose finds the device of a name for a class as in compute.numerics. It opens none. The error is
// an *Error.
func Choose(name, numerics string) (Choice, error) {
	switch name {
	case "", CPU:
		return Choice{}, nil
	case Auto:
		return chooseAny(numerics), nil
	}
	n, err := indexOf(name)
	if err != nil {
		return Choice{}, err
	}
	found, err := FindGPUs()
	if err == nil {
		err = found.lack(n, numerics)
	}
	if err != nil {
		return Choice{}, missing(name, err)
	}
	return Choice{GPU: &found.List[n]}, nil
}

// Next names the device of the n-th rank of a machine, from 0, whose first one computes on the
// device called name: the n-th GPU after it. Where the driver shows a single GPU, the launcher
// has given each rank its own.
func Next(name, numerics string, n int) (string, error) {
	c, err := Choose(name, numerics)
	if err != nil || c.GPU == nil {
		return CPU, err
	}
	found, err := FindGPUs()
	if err != nil || len(found.List) == 1 {
		return c.GPU.ID(), err
	}
	next := fmt.Sprintf("%s:%d", CUDA, c.GPU.Index+n)
	_, err = Choose(next, numerics)
	return next, err
}

// indexOf returns the number of a GPU's name.
func indexOf(name string) (n int, err error) {
	kind, number, numbered := strings.Cut(name, ":")
	if numbered {
		n, err = strconv.Atoi(number)
	}
	if kind != CUDA || err != nil || n < 0 {
		return 0, &Error{Err: fmt.Errorf("no device %q: want cpu, cuda, cuda:N or auto", name), code: codeUsage}
	}
	return n, nil
}

// chooseAny chooses for Auto.
func chooseAny(numerics string) Choice {
	found, err := FindGPUs()
	if err == nil {
		for i := range found.List {
			if err = found.lack(i, numerics); err == nil {
				g := &found.List[i]
				return Choice{GPU: g, Why: fmt.Sprintf("compute.device auto: on %s, %s", g.ID(), g.Name)}
			}
		}
	}
	if err == nil {
		err = found.lack(0, numerics) // the list is empty
	}
	return Choice{Why: fmt.Sprintf("compute.device auto: on the CPU, because %v", err)}
}

// lack returns why the n-th GPU cannot compute in a class as in compute.numerics; nil if it can.
func (g *GPUs) lack(n int, numerics string) error {
	switch {
	case n >= len(g.List):
		return &Error{Err: fmt.Errorf("the driver has no such GPU: it lists %d, from cuda:0 on", len(g.List)),
			hint: "exp doctor lists the GPUs"}
	case len(g.List[n].Classes) == 0:
		return &Error{Err: fmt.Errorf("%s has compute capability %s", g.List[n].Name, g.List[n].Capability),
			hint: "compute capability 8.0 or newer is needed: use another GPU"}
	case numerics == config.MatrixNumerics && !slices.Contains(g.List[n].Classes, numerics):
		const text = "the tensor cores of %s, compute capability %s, add up in another way than class %s"
		return &Error{Err: fmt.Errorf(text, g.List[n].Name, g.List[n].Capability, numerics),
			hint: "use a GPU of compute capability 9.0 or newer; for the class cpu/bf16 leave compute.numerics out"}
	}
	return nil
}

// missing returns the error for a GPU that this machine or this program lacks.
func missing(name string, err error) error {
	e := &Error{Err: fmt.Errorf("compute.device is %s, and %w", name, err), code: codeResource,
		hint: "to compute on the CPU: --device cpu"}
	var known *Error
	switch {
	case errors.Is(err, ErrNotBuilt):
		e.hint = "make build builds it with CUDA; " + e.hint
	case errors.As(err, &known) && known.hint != "":
		e.hint = known.hint + "; " + e.hint
	}
	return e
}
