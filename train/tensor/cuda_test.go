//go:build cuda

package tensor

import (
	"os"
	"path/filepath"
	"testing"

	"exp/kernels"
	"exp/kernels/cuda"
)

// Ranks share products on GPUs, or on the fake driver (make cuda), in each numerics class. Tests want four devices at
// a time, so four are opened, which takes long, and serve in turn.
func TestCUDA(t *testing.T) {
	for _, class := range []string{"cpu/fma", "cpu/bf16", "matrix/16x25"} {
		var devices []kernels.Backend
		turns := 0
		k := kind{class, true, func(t *testing.T) kernels.Backend {
			if turns++; len(devices) == 4 {
				return devices[turns%4]
			}
			for _, dir := range filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")) { // so that the cache of tests knows
				os.ReadFile(filepath.Join(dir, "libcuda.so.1"))
			}
			be, err := cuda.Open(0, class)
			if err != nil {
				if _, fake := os.LookupEnv("FAKECUDA"); fake {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			t.Cleanup(be.Close)
			devices = append(devices, be)
			return be
		}}
		t.Run(class, func(t *testing.T) {
			sameProducts(t, k)
			sameModel(t, k, 2, 4)
		})
	}
}
