//go:build !cuda

package device

import "exp/kernels"

// FindGPUs returns ErrNotBuilt: this program cannot see GPUs.
func FindGPUs() (*GPUs, error) { return nil, ErrNotBuilt }

func openGPU(*GPU, kernels.DType) (Device, error) { return nil, ErrNotBuilt }
