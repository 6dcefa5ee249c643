package kernels

import "fmt"

// DeviceError says that a device failed. Functions that return errors return it; operations and
// Sync panic with it.
type DeviceError struct {
	Device string // as compute.device names it: "cuda:0"
	Op     string // what failed: "copy to the host"
	Code   int    // the driver's
	Text   string // what the code means
	Help   string // what to do
	// Lasting errors lose the device's memory: every later call fails, and only another process
	// can use the device.
	Lasting bool
}

func (e *DeviceError) Error() string {
	return fmt.Sprintf("%s: %s: %s (code %d)", e.Device, e.Op, e.Text, e.Code)
}

// Hint says what to do.
func (e *DeviceError) Hint() string { return e.Help }

// Part is a part of a device's memory.
type Part string

// The parts that are allocated on their own.
const (
	WeightRoom     Part = "weights and gradients"
	MomentRoom     Part = "moments of the optimizer"
	ActivationRoom Part = "activations of a micro-batch"
	CacheRoom      Part = "key/value cache of the sampler"
	StepRoom       Part = "activations of a sampling step"
	ScratchRoom    Part = "scratch memory of the kernels"
)

// RoomError says which part found no room in a device's memory.
type RoomError struct {
	Part Part
	Err  error // from Alloc
}

func (e *RoomError) Error() string { return fmt.Sprintf("%s: %v", e.Part, e.Err) }

// Unwrap returns the cause.
func (e *RoomError) Unwrap() error { return e.Err }
