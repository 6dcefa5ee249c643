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

// ExitCode is the code for something that the machine lacks.
func (e *DeviceError) ExitCode() int { return 7 }

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

// Hint says what makes the part smaller.
func (e *RoomError) Hint() string {
	smaller := "train fewer parameters (train.lora.rank) or a smaller model"
	switch e.Part {
	case ActivationRoom:
		smaller = "set compute.recompute: true, or make compute.micro_batch_tokens smaller"
	case ScratchRoom:
		smaller = "make compute.micro_batch_tokens or rollout.max_sequences smaller"
	case CacheRoom, StepRoom:
		smaller = "make rollout.max_sequences smaller"
	}
	return smaller + "; exp run --dry-run shows the size of every part"
}

// ExitCode is the code for something that the machine lacks.
func (e *RoomError) ExitCode() int { return 7 }
