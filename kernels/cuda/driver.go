//go:build cuda

package cuda

/*
#cgo CFLAGS: -O2 -I${SRCDIR}/include
#cgo LDFLAGS: -L${SRCDIR}/lib -ldl
#include "cuda.h"
CUresult shim_load(char *why, size_t room);
*/
import "C"

import (
	"fmt"
	"sync"

	"gorgonia.org/cu"
)

// minVersion is the version of the oldest driver that loads the kernels: 525, CUDA 12.0.
const minVersion = 12000

// load opens the driver once. The error is ErrNoDriver without one.
var load = sync.OnceValue(func() error {
	var why [256]C.char
	switch code := C.shim_load(&why[0], C.size_t(len(why))); {
	case code == C.CUDA_ERROR_SHARED_OBJECT_INIT_FAILED:
		return fmt.Errorf("%w: %s", ErrNoDriver, C.GoString(&why[0]))
	case code != 0:
		return errorOf("cuda", "open the driver", int(code))
	}
	if v := cu.Version(); v < minVersion {
		return errorOf("cuda", fmt.Sprintf("driver for CUDA %s", version(v)), oldPTX)
	}
	return nil
})

func version(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// Device describes a GPU.
type Device struct {
	Name         string
	Memory       int64 // bytes
	Major, Minor int   // compute capability
}

// minCapability is the least major compute capability for a numerics class: the kernels need 8, and
// tensor cores before 9 add up in another way.
func minCapability(numerics string) int {
	if numerics == "matrix/16x25" {
		return 9
	}
	return 8
}

// Classes returns the numerics classes that the kernels compute on the device: float32 chains and
// tile sums on its cores, and its tensor cores' sums.
func (d Device) Classes() (names []string) {
	for _, name := range []string{"cpu/fma", "cpu/bf16", "matrix/16x25"} {
		if d.Major >= minCapability(name) {
			names = append(names, name)
		}
	}
	return names
}

// Devices returns the GPUs in the driver's order, and the version of CUDA that the driver
// supports. It opens no device. The error is ErrNoDriver or a *kernels.DeviceError.
func Devices() (list []Device, cuda string, err error) {
	if err := load(); err != nil {
		return nil, "", err
	}
	n, err := cu.NumDevices()
	if err != nil {
		return nil, "", wrap("cuda", "count the devices", err)
	}
	for i := range n {
		d, err := describe(i)
		if err != nil {
			return nil, "", wrap(deviceName(i), "find the device", err)
		}
		list = append(list, d)
	}
	return list, version(cu.Version()), nil
}

func describe(i int) (d Device, err error) {
	dev, err := cu.GetDevice(i)
	if err != nil {
		return d, err
	}
	if d.Name, err = dev.Name(); err != nil {
		return d, err
	}
	if d.Memory, err = dev.TotalMem(); err != nil {
		return d, err
	}
	if d.Major, err = dev.Attribute(cu.ComputeCapabilityMajor); err != nil {
		return d, err
	}
	d.Minor, err = dev.Attribute(cu.ComputeCapabilityMinor)
	return d, err
}
