//go:build cuda

package selftest

import (
	"os"
	"testing"

	"exp/kernels/cuda"
)

// A training run on a GPU, or on the fake driver (make cuda), has the bits of the CPU.
func TestTrainOnCUDA(t *testing.T) {
	for _, class := range []string{"cpu/fma", "cpu/bf16", "matrix/16x25"} {
		be, err := cuda.Open(0, class)
		if err != nil {
			if _, fake := os.LookupEnv("FAKECUDA"); fake {
				t.Fatal(err)
			}
			t.Skip(err)
		}
		got, err := Train(t.Context(), be)
		if want, _ := Want(class); err != nil || got != want {
			t.Errorf("%s: digest %s, %v; want %s", class, got, err, want)
		}
		be.Close()
	}
}
