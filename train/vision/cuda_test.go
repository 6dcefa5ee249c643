//go:build cuda

package vision

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/kernels/cuda"
)

// A GPU has the bits of a CPU in the same numerics class. Tests of CUDA without a GPU run on a fake driver, which
// FAKECUDA configures.
func TestFeaturesOnCUDA(t *testing.T) {
	for class, o := range map[string]cpu.Options{"cpu/fma": {}, "matrix/16x25": {Matrix: true}} {
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
		host, err := cpu.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(host.Close)
		for _, kind := range kinds() {
			c := tiny(kind)
			c.Width, c.FFN = map[Kind]int{Qwen2VL: 160, Qwen25VL: 160, Qwen3VL: 144, GLM4V: 64,
				InternVL: 64, Idefics3: 64, Pixtral: 64}[kind], 40 // heads of 80, 72 and 32
			if c.has().eps {
				c.Layers = 1
			}
			for _, dtype := range []kernels.DType{kernels.F32, kernels.BF16} {
				p := picturedAs(c, 6, 10, 1)
				got, want := open(t, be, c, dtype).Encode(be, p), open(t, host, c, dtype).Encode(host, p)
				if !slices.Equal(got, want) {
					t.Errorf("%s, %s, %s: other bits than the CPU's", class, kind, dtype)
				}
			}
		}
	}
}
