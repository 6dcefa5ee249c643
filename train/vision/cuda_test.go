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
	eachOnCUDA(t, func(class string, be, host kernels.Backend) {
		for _, kind := range kinds() {
			c := wide(kind)
			for _, dtype := range []kernels.DType{kernels.F32, kernels.BF16} {
				p := picturedAs(c, 6, 10, 1)
				got, want := open(t, be, c, dtype).Encode(be, p), open(t, host, c, dtype).Encode(host, p)
				if !slices.Equal(got, want) {
					t.Errorf("%s, %s, %s: other bits than the CPU's", class, kind, dtype)
				}
			}
		}
	})
}

func TestGradientsOnCUDA(t *testing.T) {
	eachOnCUDA(t, func(class string, be, host kernels.Backend) {
		towers := smooth()
		if be.Operand() == kernels.BF16 { // with tensor cores, for which the size of a head matters
			towers = map[string]Config{}
			for _, kind := range kinds() {
				towers[string(kind)] = wide(kind)
			}
		}
		for name, c := range towers {
			p := picturedAs(c, 2*c.Merge, 3*c.Merge, 1)
			d := upstream(c, p)
			got, want := learning(t, be, c, rough(c)).backward(p, d), learning(t, host, c, rough(c)).backward(p, d)
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: other gradients than the CPU's", class, name)
			}
		}
	})
}

func TestAdaptersOnCUDA(t *testing.T) {
	eachOnCUDA(t, func(class string, be, host kernels.Backend) {
		for _, kind := range []Kind{Qwen25VL, InternVL, Pixtral} {
			c := wide(kind)
			p := picturedAs(c, 2*c.Merge, 3*c.Merge, 1)
			d := upstream(c, p)
			a, b := adapted(t, be, c, rough(c)), adapted(t, host, c, rough(c))
			if !slices.Equal(a.tower.Encode(be, p), b.tower.Encode(host, p)) || !slices.Equal(a.backward(p, d), b.backward(p, d)) {
				t.Errorf("%s, %s: other bits than the CPU's", class, kind)
			}
		}
	})
}

// eachOnCUDA calls f with a GPU and a CPU in each of two classes.
func eachOnCUDA(t *testing.T, f func(class string, be, host kernels.Backend)) {
	t.Helper()
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
		f(class, be, host)
	}
}

// wide returns tiny's tower with heads of 80, 72 or 32 channels.
func wide(kind Kind) Config {
	c := tiny(kind)
	c.Width, c.FFN = map[Kind]int{Qwen2VL: 160, Qwen25VL: 160, Qwen3VL: 144, GLM4V: 64,
		InternVL: 64, Idefics3: 64, Pixtral: 64, Gemma3: 64}[kind], 40
	if c.has().eps {
		c.Layers = 1
	}
	return c
}
