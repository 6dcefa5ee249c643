//go:build cuda

package selftest

import (
	"os"
	"testing"

	"exp/kernels/cuda"
)

// A training run on a GPU, or on the fake driver (make cuda), has the bits of the CPU.
func TestTrainOnCUDA(t *testing.T) {
	be, err := cuda.Open(0)
	if err != nil {
		if _, fake := os.LookupEnv("FAKECUDA"); fake {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	defer be.Close()
	got, err := Train(t.Context(), be)
	if want, _ := Want("cpu/fma"); err != nil || got != want {
		t.Errorf("digest %s, %v; want %s", got, err, want)
	}
}
