//go:build !cuda

package device

// FindGPUs returns ErrNotBuilt: this program cannot see GPUs.
func FindGPUs() (*GPUs, error) { return nil, ErrNotBuilt }

func openGPU(*GPU, string) (Device, error) { return nil, ErrNotBuilt }

// Products returns ErrNotBuilt.
func (g *GPU) Products() (string, error) { return "", ErrNotBuilt }
