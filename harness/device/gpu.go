package device

import (
	"errors"
	"fmt"

	"exp/kernels"
	"exp/kernels/cuda"
)

// GPUs are the devices that the CUDA driver lists.
type GPUs struct {
	CUDA string // the version of CUDA that the driver supports
	List []GPU
}

// GPU describes one of them.
type GPU struct {
	Index      int // in the driver's order
	Name       string
	Memory     int64    // bytes
	Capability string   // compute capability: "9.0"
	Classes    []string // numerics classes that the hardware can compute; none if it is too old
}

// ID returns the GPU's name in compute.device.
func (g *GPU) ID() string { return fmt.Sprintf("%s:%d", CUDA, g.Index) }

// WgmmaVariable names the environment variable that keeps GPUs off wgmma, where it is "0".
const WgmmaVariable = "EXP_WGMMA"

var (
	// ErrNotBuilt is returned by a program without build tag cuda.
	ErrNotBuilt = errors.New("this program was built without CUDA")
	// ErrNoDriver is returned where no CUDA driver is installed.
	ErrNoDriver = errors.New("no CUDA driver is installed")
)

// DeltaScratch returns the most elements of a GPU's workspace that a layer with linear attention takes
// (cuda.DeltaScratch).
func DeltaScratch(s kernels.DeltaShape, rows, sequences int, learns bool) int {
	return cuda.DeltaScratch(s, rows, sequences, learns)
}

// DeltaFits reports whether a GPU's kernels can take heads of a shape through linear attention (cuda.DeltaFits).
func DeltaFits(s kernels.DeltaShape, learns bool) bool { return cuda.DeltaFits(s, learns) }
