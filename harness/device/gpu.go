package device

import "errors"

// GPUs are the devices that the CUDA driver lists.
type GPUs struct {
	CUDA string // the version of CUDA that the driver supports
	List []GPU
}

// GPU describes one of them.
type GPU struct {
	Name       string
	Memory     int64    // bytes
	Capability string   // compute capability: "9.0"
	Classes    []string // numerics classes that it can compute; none if it is too old
}

var (
	// ErrNotBuilt is returned by a program without build tag cuda.
	ErrNotBuilt = errors.New("built without tag cuda")
	// ErrNoDriver is returned where no CUDA driver is installed.
	ErrNoDriver = errors.New("no CUDA driver")
)
