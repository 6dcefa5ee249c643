package cuda

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// program and suite are stand-ins for the programs that gpu.sh runs.
const (
	program = `#!/bin/sh
case "$1" in
doctor)
	[ -z "$GPU" ] || printf '  "name": "cuda:0",\n  "text": "%s; can compute the numerics classes cpu/fma"\n' "$GPU"
	printf '  "name": "devices",\n  "text": "no CUDA driver is installed"\n'
	printf '  "name": "digest",\n  "text": "8a1a, as on every machine of the class cpu/fma"\n'
	printf '  "name": "bf16 digest",\n  "text": "%s"\n' "$DIGEST" ;;
bench)
	case "$*" in *"--numerics matrix/16x25 "*) echo "training  12345 tokens/s" ;; *) exit 1 ;; esac ;;
show)
	case "$*" in */cuda) chain=$CHAIN ;; *) chain=1f89 ;; esac
	printf '  "run": "f2ed41f1502e",\n  "chain": "%s",\n' "$chain" ;;
esac
`
	suite = `#!/bin/sh
case "$*" in
*TestWgmmaBits*)
	[ "$WGMMA" != PASS ] || echo "    --- PASS: TestTensorCore/normal (0.1s)"
	[ "$WGMMA" != FAIL ] || echo "    --- FAIL: TestWgmmaBits/1,1,1 (0.1s)"
	[ "$WGMMA" != SKIP ] || echo "    wgmma_test.go:9: mma.sync, not wgmma: element 3 of a MatMul is 1, by mma.sync 2"
	echo "--- $WGMMA: TestWgmmaBits (0.1s)"
	[ "$WGMMA" != FAIL ] ;;
*TestConformance/bf16*) [ "$CHECK" = SKIP ] || echo "    --- $CHECK: TestConformance/bf16/MatMul (0.1s)"; [ "$CHECK" != FAIL ] ;;
*TestConformance/matrix*) echo "    --- PASS: TestConformance/matrix/MatMul (0.1s)" ;;
*TestConformance*) echo "    --- PASS: TestConformance/f32/MatMul (0.1s)" ;;
*TestTensorCore*)
	[ "$CORE" != PASS ] || echo "    --- PASS: TestTensorCore/normal (0.1s)"
	[ "$CORE" != FAIL ] || printf '    --- FAIL: TestTensorCore/tiny (0.1s)\n    matrix_test.go:9: 1 plus the products of\n        [2]\n        is 3, want 4\n'
	[ "$CORE" != SKIP ] || echo "    matrix_test.go:9: A100 has compute capability 8.0"
	echo "--- $CORE: TestTensorCore (0.1s)"
	[ "$CORE" != FAIL ] ;;
*CublasLt*)
	[ "$VENDOR" != FAIL ] || { echo "    bench_test.go:9: cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED (status 1)"; exit 1; }
	[ "$VENDOR" != SKIP ] || { printf "    bench_test.go:9: no cuBLASLt: no such file\n--- SKIP: BenchmarkCublasLt\n"; exit 0; }
	echo "    bench_test.go:9: libcublasLt.so.13: cuBLASLt 13.1.5"
	echo "BenchmarkCublasLt/MatMul/gate_and_up/M=64/N=8/K=4"
	echo "BenchmarkCublasLt/MatMul/gate_and_up/M=64/N=8/K=4-16   9   2000000 ns/op   800000 GFLOP/s" ;;
*7BOperations*) echo "Benchmark7BOperations/Attention/4x1024-16   9   9000000 ns/op   250000 GFLOP/s   400000 ns/call"
	echo "Benchmark7BOperations/Add-16   9   9000000 ns/op   1500000 MB/s   40000 ns/call" ;;
*7B*M=4096*) echo "Benchmark7B/MatMul/qkv/M=4096/N=8/K=4-16   9   9000000 ns/op   320000 GFLOP/s   5000000 ns/product" ;;
*7B*) echo "Benchmark7B/MatMul/gate_and_up/M=64/N=8/K=4-16   9   9000000 ns/op   640000 GFLOP/s   2500000 ns/product" ;;
*Memory*) echo "BenchmarkMemory/Copy-16   50   1000000 ns/op   2000000.00 MB/s" ;;
*Kernels*) [ -z "$LATE" ] || { : >"$LATE"; exit 124; } # as if stopped when the time was over
	echo "BenchmarkKernels/f32/MatMul/impl=cuda-H100/M=8/N=4-16   9   2500000 ns/op   500000.00 MB/s   640 GFLOP/s   0 B/op" ;;
esac
`
)

// sanitizer is a stand-in for compute-sanitizer, which runs a program and then sums up what it found.
const sanitizer = `#!/bin/sh
[ "$SANITIZER" != OLD ] || { echo "========= Error: the device is not supported"; exit 1; }
case "$*" in
*"$EXP -q run configs/smoke_cpu.yaml --device cuda "*matrix/16x25*) ;;
*"$TESTS -test.short -test.run TestConformance"*) [ -n "$EXP_CUDA_TEST_TILES" ] || exit 1 ;;
*"$TESTS -test.short -test.run Test"*) ;;
*) exit 1 ;;
esac
case "$SANITIZER $2" in
"LATE memcheck") exit 124 ;;
"LATE racecheck") echo "========= Error: Race reported between Read access and Write access"; exit 124 ;;
*memcheck) echo "========= ERROR SUMMARY: 0 errors" ;;
"RACE racecheck") echo "========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)"; exit 9 ;;
*) echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)" ;;
esac
`

// clock is a stand-in for date: where file LATE exists, ten minutes have passed.
const clock = `#!/bin/sh
[ -e "$LATE" ] || exec /bin/date "$@"
case $* in
+%s) echo $(($(/bin/date +%s) + 600)) ;;
+%s%3N) echo $(($(/bin/date +%s%3N) + 600000)) ;;
*) exec /bin/date "$@" ;;
esac
`

// `make gpu` names failed checks and missing tools, and writes its measurements.
func TestGPU(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	exp, tests, tools := filepath.Join(dir, "exp"), filepath.Join(dir, "tests"), filepath.Join(dir, "tools")
	if err := os.Mkdir(tools, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{exp: program, tests: suite, filepath.Join(tools, "compute-sanitizer"): sanitizer,
		filepath.Join(tools, "date"): clock} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const right = "915b, as on every machine of the class cpu/bf16"
	cores := map[string]string{"other sums": "FAIL", "older cores": "SKIP"} // what the test of tensor cores does
	vendor := map[string]string{"no library": "SKIP", "library fails": "FAIL"}
	sanitizers := map[string]string{"race": "RACE", "old sanitizer": "OLD", "late sanitizer": "LATE"}
	wgmma := map[string]string{"other wgmma": "FAIL", "no wgmma": "SKIP"}
	for _, tt := range []struct {
		name, gpu, digest, chain, check string
		code                            int
		said, written                   []string
	}{
		{"passes", "H100, 80 GiB", right, "1f89", "PASS", 0, nil, []string{": H100, 80 GiB\n", "passed: " + right,
			"| conformance, bf16 | passed: 1 checks |", "| smoke run, f32 | passed: run and chain of the CPU, f2ed41f1 |",
			"| tensor cores = class matrix/16x25 | passed: 1 kinds of numbers |", "| conformance, matrix | passed: 1 checks |",
			"| MatMul | gate and up | M=64 N=8 K=4 | chosen | 2.500 | 640.0 | 800.0 | 80.0 % |",
			"| MatMul | qkv | M=4096 N=8 K=4 | mma.sync | 5.000 | 320.0 |  |  |",
			"| measuring cuBLASLt | done: libcublasLt.so.13: cuBLASLt 13.1.5 |",
			"| Attention | 4x1024 | 0.400 | 250.0 |  |  |", "| Add |  | 0.040 |  | 1500.0 | 75.0 % |",
			"| measuring a model of 0.5B | done |", "\n    training  12345 tokens/s\n",
			"| memcheck, smoke run, matrix | passed: ERROR SUMMARY: 0 errors |",
			"| memcheck, products of slim_ | passed: ERROR SUMMARY: 0 errors |",
			"| racecheck, smoke run, matrix | passed: RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings) |",
			"| racecheck, rows in shared memory | passed: RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings) |",
			"| racecheck, linear attention | passed: RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings) |",
			"| racecheck, attention by wgmma | passed: RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings) |",
			"| wgmma = mma.sync | passed: 3 shapes and kinds of numbers |", "| Copy | 2000.0 |", "| MatMul | M=8 N=4 | f32 | 2.500 | 500.0 | 25.0 % | 640.0 |"}},
		{"fake", "emulated device, 1 GiB", right, "1f89", "PASS", 0, []string{"not a GPU"}, []string{"the figures mean nothing",
			"| compute-sanitizer | not tried: the driver is fake |"}},
		{"no driver", "", right, "1f89", "PASS", 7, []string{"no CUDA driver is installed", "driver 525"}, nil},
		{"digest", "H100", "915c; expected 915b", "1f89", "PASS", 1, nil, []string{"FAILED: 915c; expected 915b"}},
		{"run", "H100", right, "1f88", "PASS", 1, nil, []string{"| smoke run, bf16 | FAILED: not the run of the CPU"}},
		{"no check", "H100", right, "1f89", "SKIP", 1, nil, []string{"| conformance, bf16 | FAILED: no check ran |"}},
		{"check", "H100", right, "1f89", "FAIL", 1, nil, []string{"| conformance, bf16 | FAILED: bf16/MatMul |"}},
		{"other sums", "B300", right, "1f89", "PASS", 1, nil, []string{"| tensor cores = class matrix/16x25 | FAILED: tiny |",
			"The first step that differs:\n\n    matrix_test.go:9: 1 plus the products of\n    [2]\n    is 3, want 4\n"}},
		{"other wgmma", "H100", right, "1f89", "PASS", 1, nil,
			[]string{"| wgmma = mma.sync | FAILED: WgmmaBits/1,1,1; EXP_WGMMA=0 keeps products and attention off wgmma |"}},
		{"no wgmma", "B200", right, "1f89", "PASS", 0, nil,
			[]string{"| wgmma = mma.sync | not tried: mma.sync, not wgmma: element 3 of a MatMul is 1, by mma.sync 2 |"}},
		{"older cores", "A100", right, "1f89", "PASS", 0, nil,
			[]string{"| tensor cores = class matrix/16x25 | not tried: A100 has compute capability 8.0 |"}},
		{"no library", "H100", right, "1f89", "PASS", 0, nil, []string{"| measuring cuBLASLt | not tried: no cuBLASLt: no such file |",
			"| MatMul | gate and up | M=64 N=8 K=4 | chosen | 2.500 | 640.0 |  |  |"}},
		{"library fails", "H100", right, "1f89", "PASS", 0, []string{"CUBLAS_STATUS_NOT_INITIALIZED"},
			[]string{"| measuring cuBLASLt | failed: cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED (status 1) |"}},
		{"race", "H100", right, "1f89", "PASS", 1, []string{"2 hazards"}, []string{"| memcheck, smoke run, matrix | passed: ERROR SUMMARY: 0 errors |",
			"| racecheck, rows in shared memory | FAILED: RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning); exit code 9 |"}},
		{"old sanitizer", "H100", right, "1f89", "PASS", 0, nil,
			[]string{"| racecheck, rows in shared memory | not tried: Error: the device is not supported |"}},
		{"late sanitizer", "H100", right, "1f89", "PASS", 1, nil, []string{"| memcheck, smoke run, matrix | stopped at its time limit |",
			"| racecheck, rows in shared memory | FAILED: Error: Race reported between Read access and Write access; exit code 124 |"}},
		{"no sanitizer", "H100", right, "1f89", "PASS", 0, nil, []string{"| compute-sanitizer | not tried: PATH does not have it"}},
		{"late", "H100", right, "1f89", "PASS", 0, nil, []string{"| measuring kernels, f32 | stopped at its time limit |",
			"| memcheck, smoke run, matrix | stopped at its time limit | 0 |"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			results := filepath.Join(t.TempDir(), "results.md")
			cmd := exec.Command("/bin/sh", "gpu.sh")
			cmd.Env = append(os.Environ(), "EXP="+exp, "TESTS="+tests, "RESULTS="+results, "GPU="+tt.gpu,
				"DIGEST="+tt.digest, "CHAIN="+tt.chain, "CHECK="+tt.check,
				"VENDOR="+vendor[tt.name], "SANITIZER="+sanitizers[tt.name],
				"CORE="+cmp.Or(cores[tt.name], "PASS"), "WGMMA="+cmp.Or(wgmma[tt.name], "PASS"))
			if tt.name != "no sanitizer" {
				cmd.Env = append(cmd.Env, "PATH="+tools+":"+os.Getenv("PATH"))
			} else if at, err := exec.LookPath("compute-sanitizer"); err == nil {
				t.Skip("there is one: " + at)
			}
			if tt.name == "late" {
				cmd.Env = append(cmd.Env, "LATE="+filepath.Join(dir, "late"))
			}
			out, err := cmd.CombinedOutput()
			code := 0
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
				code = exit.ExitCode()
			}
			written, _ := os.ReadFile(results)
			if code != tt.code || (len(written) > 0) != (len(tt.written) > 0) {
				t.Errorf("exit code %d, want %d; wrote %d bytes\n%s", code, tt.code, len(written), out)
			}
			for _, want := range tt.said {
				if !strings.Contains(string(out), want) {
					t.Errorf("the output lacks %q:\n%s", want, out)
				}
			}
			for _, want := range tt.written {
				if !strings.Contains(string(written), want) {
					t.Errorf("the tables lack %q:\n%s", want, written)
				}
			}
		})
	}
}
