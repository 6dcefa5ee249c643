package run

import (
	"fmt"

	"exp/harness/config"
	"exp/train/model"
)

// lackKernels reports a model that GPUs do not compute.
func lackKernels(c *config.Run, lack func(missing, do string)) {
	arch, err := architectureOf(c, 0)
	if err != nil || !arch.Recurrent() {
		return // others report a broken model
	}
	lack(noKernels(c.Model.Name(), arch),
		"compute.device: cpu computes it; a model with attention in all layers, such as Qwen3, runs on a GPU")
}

// noKernels says what a GPU lacks for a model with linear attention.
func noKernels(name string, arch model.Config) string {
	n := 0
	for _, linear := range arch.Linear {
		if linear {
			n++
		}
	}
	return fmt.Sprintf("kernels for the GPU: %d of the %d layers of %s have linear attention (Gated DeltaNet), which "+
		"this program computes on the CPU alone", n, arch.Layers, name)
}
