//go:build cuda

package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The suite finds a wrong kernel. Each mutant is a fake driver with one change in its kernels; a
// check must fail on it.
func TestMutants(t *testing.T) {
	fake(t)
	open(t)
	for _, m := range []struct{ name, file, from, to, check string }{
		{"no bound", "matmul.cu", "if (m >= a.M) return;", "", "f32/MatMul"},
		{"chain backwards", "sum.h", "for (long i = 0; i < n; i++)\n", "for (long i = n - 1; i >= 0; i--)\n", "f32/MatMulDX"},
		{"blocks in one chain", "matmul.cu", "a.dw[i] = a.tile ? sum", "a.dw[i] = 1 ? sum", "f32/MatMulDW"},
		{"lanes shifted", "num.h", "lane[j] = fmaf(load(x", "lane[j / 2] = fmaf(load(x", "f32/RMSNorm"},
		{"prefix without its group", "attention.cu", "? a.p.groups[g + 1] - 1 : j;", "? j : j;", "f32/AttentionBackward"},
		{"ties by the higher id", "sample.cu", "z[i] == z[j] && i < j", "z[i] == z[j] && i > j", "f32/Sample"},
		{"one chain for even and odd", "sum.h", "if (i % 2) odd", "if (0) odd", "bf16/MatMul"},
		{"subnormal products", "sum.h", "odd = flush(fmaf(p, q, odd))", "odd = fmaf(p, q, odd)", "bf16/MatMul/tiny"},
		{"blocks in steps of all rows", "matmul.cu", "a.tile ? a.dw[i] : 0", "0", "bf16/MatMulDW"},
		{"gates not rounded", "matmul.cu", "if (a.tile) g = factor(g), u = factor(u);", "", "bf16/MatMulSwiGLU"},
		{"probabilities not rounded", "sum.h", "p = factor(w)", "p = w", "bf16/Attention"},
		{"sums without their last step", "sum.h", "if (s.even && t % TILE_TERMS != 0) end_step(s);", "(void)s, (void)t;", "bf16/PagedAttention"},
		{"no zeros after a window", "sum.h", "if (!s.even) return;", "return;", "bf16/AttentionBackward"},
		{"subnormal weights", "copy.cu", "if (i < a.n) ((uint16_t *)a.dst)[i] = round_bf16(float_of(", "if (0) ((uint16_t *)a.dst)[i] = round_bf16(float_of(", "bf16/Frozen/subnormals"},
	} {
		t.Run(m.name, func(t *testing.T) {
			lib := t.TempDir()
			mutate(t, lib, m.file, m.from, m.to)
			cmd := exec.Command(os.Args[0], "-test.short", "-test.v", "-test.run=TestConformance/"+m.check)
			cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+lib)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestConformance/"+m.check) {
				t.Errorf("the check %s passes: %v\n%s", m.check, err, out)
			}
		})
	}
}

// mutate builds a fake driver in lib from sources where `to` replaces the first `from` in file.
func mutate(t *testing.T, lib, file, from, to string) {
	t.Helper()
	text := read(t, file)
	if !strings.Contains(text, from) {
		t.Fatalf("%s does not contain %q", file, from)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(strings.Replace(text, from, to, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	make := exec.Command("make", "-f", filepath.Join(dir, "fake", "Makefile"), "KERNELS="+dir,
		"DRIVER="+filepath.Join(lib, "libcuda.so.1"))
	if out, err := make.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
