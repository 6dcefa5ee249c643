//go:build cuda

package device

import (
	"errors"
	"fmt"

	"exp/kernels"
	"exp/kernels/cuda"
)

// FindGPUs asks the driver for its devices and opens none. The error is an *Error, and
// wraps ErrNoDriver if there is no driver.
func FindGPUs() (*GPUs, error) {
	list, version, err := cuda.Devices()
	var failure *kernels.DeviceError
	switch {
	case errors.Is(err, cuda.ErrNoDriver):
		return nil, &Error{Err: fmt.Errorf("%w (%v)", ErrNoDriver, err), code: codeResource,
			hint: "install the NVIDIA driver, version 525 or newer; a container needs it passed on"}
	case errors.As(err, &failure):
		return nil, &Error{Err: err, code: codeResource, hint: failure.Help}
	case err != nil:
		return nil, &Error{Err: err, code: codeResource}
	}
	found := &GPUs{CUDA: version}
	for _, d := range list {
		found.List = append(found.List, GPU{Name: d.Name, Memory: d.Memory, Classes: d.Classes(),
			Capability: fmt.Sprintf("%d.%d", d.Major, d.Minor)})
	}
	return found, nil
}
