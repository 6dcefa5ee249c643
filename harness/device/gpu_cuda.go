//go:build cuda

package device

import (
	"errors"
	"fmt"
	"strings"

	"exp/harness/config"
	"exp/kernels"
	"exp/kernels/cuda"
)

// FindGPUs asks the driver for its devices and opens none. Its error is an *Error, which
// wraps ErrNoDriver if the driver is missing.
func FindGPUs() (*GPUs, error) {
	list, version, err := cuda.Devices()
	if err != nil {
		return nil, driverError(err)
	}
	found := &GPUs{CUDA: version}
	for i, d := range list {
		found.List = append(found.List, GPU{Index: i, Name: d.Name, Memory: d.Memory, Classes: d.Classes(),
			Capability: fmt.Sprintf("%d.%d", d.Major, d.Minor)})
	}
	return found, nil
}

// driverError returns the *Error for an error of package cuda.
func driverError(err error) error {
	var failure *kernels.DeviceError
	switch {
	case errors.Is(err, cuda.ErrNoDriver):
		reason := strings.TrimPrefix(err.Error(), cuda.ErrNoDriver.Error()+": ")
		return &Error{Err: fmt.Errorf("%w (%s)", ErrNoDriver, reason), code: codeResource,
			hint: "install the NVIDIA driver, version 525 or newer; a container needs it passed on"}
	case errors.As(err, &failure):
		return &Error{Err: err, code: codeResource, hint: failure.Help}
	}
	return &Error{Err: err, code: codeResource}
}

// openGPU opens a device that FindGPUs found, in a numerics class.
func openGPU(g *GPU, numerics string) (Device, error) {
	be, err := cuda.Open(g.Index, numerics)
	if err != nil {
		return nil, driverError(err)
	}
	return onGPU{be, g}, nil
}

// onGPU is a GPU as a Device.
type onGPU struct {
	*cuda.Backend
	about *GPU
}

// Where implements Device.
func (g onGPU) Where() string { return g.about.ID() + ", " + g.about.Name }

// Products opens the GPU in class matrix/16x25 and says how it computes products: by wgmma, or by mma.sync and why.
func (g *GPU) Products() (string, error) {
	be, err := cuda.Open(g.Index, config.MatrixNumerics)
	if err != nil {
		return "", driverError(err)
	}
	defer be.Close()
	return be.Products(), nil
}
