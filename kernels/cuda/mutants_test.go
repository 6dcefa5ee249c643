//go:build cuda

package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The suite finds a kernel that is wrong. Each mutant is a fake driver with one change in its
// kernels, on which a check must fail.
func TestMutants(t *testing.T) {
	fake(t)
	open(t)
	for _, m := range []struct{ name, file, from, to, check string }{
		{"no bound", "matmul.cu", "if (m >= a.M) return;", "", "MatMul"},
		{"chain backwards", "matmul.cu", "for (long n = 0; n < N; n++) acc", "for (long n = N - 1; n >= 0; n--) acc", "MatMulDX"},
		{"blocks in one chain", "matmul.cu", "float acc = 0;\n\t\tfor (long m", "float acc = b ? a.dw[i] : 0;\n\t\tfor (long m", "MatMulDW"},
		{"lanes shifted", "num.h", "lane[j] = fmaf(x[i + j], y[i + j], lane[j])", "lane[j / 2] = fmaf(x[i + j], y[i + j], lane[j / 2])", "RMSNorm"},
		{"prefix without its group", "attention.cu", "? a.p.groups[g + 1] - 1 : j;", "? j : j;", "AttentionBackward"},
		{"ties by the higher id", "sample.cu", "z[i] == z[j] && i < j", "z[i] == z[j] && i > j", "Sample"},
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

// mutate builds a fake driver in lib from sources in which file has `to` for the first `from`.
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
