#!/bin/sh
# Tests and measures the backend on a GPU, in under ten minutes and without a network, and appends
# tables to RESULTS (kernels/cuda/RESULTS.md; on the fake driver build/fake/RESULTS.md).
# `make gpu` builds EXP, the program, and TESTS, the package's tests.
#
#	BENCH=MatMul       the kernels to measure; "." is all
#	CHECKS=MatMul      the checks of the conformance suite to run; "." is all
#	RUNS=f32           the classes of smoke runs, of f32, bf16 and matrix; all if not set
#	LIMIT=590          seconds for everything; each part has a limit of its own too
#	EXP_CUBLASLT=PATH  NVIDIA's library to compare products with, where the system finds none
#
# Exit code 7: no GPU can compute. 1: a test failed, which the tables name.
cd "$(dirname "$0")/../.."
EXP=${EXP:-bin/exp} TESTS=${TESTS:-build/cuda.test} BENCH=${BENCH:-.} CHECKS=${CHECKS:-.}
end=$(($(date +%s) + ${LIMIT:-590}))
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
export NO_COLOR=1
bad=0

milliseconds() { date +%s%3N; }

# judge prints a row of the table of tests: name, result, whole seconds.
judge() { echo "| $1 | $2 | $((($(milliseconds) - began) / 1000)) |" >>"$work/tests"; echo "$1: $2" >&2; }

# within runs a command with a time limit in seconds, or what is left for everything. It returns 124 if the
# command was stopped, also where it took SIGKILL (137) to stop it.
within() {
	start=$(date +%s) limit=$1
	shift
	[ "$((end - start))" -ge "$limit" ] || limit=$((end - start))
	[ "$limit" -gt 0 ] || return 124
	timeout -k 5 "$limit" "$@"
	status=$?
	[ "$status" != 137 ] || [ "$(date +%s)" -lt "$((start + limit))" ] || status=124
	return "$status"
}

# limited is within for a part of its own: judge tells its seconds.
limited() {
	began=$(milliseconds)
	within "$@"
}

# messages prints what tests and benchmarks logged.
messages() { sed -n 's/.*_test.go:[0-9]*: //p' "$1"; }

# field NAME prints the text of a check of exp doctor.
field() {
	awk -v name="$1" '
	{ key = $1; sub(/^ *"[a-z]*": "?/, ""); sub(/"?,?$/, "") }
	key == "\"name\":" { on = $0 == name }
	on && key == "\"text\":" { print; exit }' "$work/doctor"
}

# The first command waits for the driver to compile the kernels, about half a minute of one core.
limited 150 "$EXP" doctor --quick --json --store "$work/none" >"$work/doctor" 2>"$work/err"
device=$(field cuda:0)
case $device in
*"can compute"*) ;;
*)
	echo "make gpu: no GPU can compute here: ${device:-$(field devices)}" >&2
	[ -s "$work/doctor" ] || cat "$work/err" >&2
	echo "It needs an NVIDIA GPU of compute capability 8.0 or newer, and driver 525 or newer (libcuda.so.1)." >&2
	echo "On a driver for tests, without a GPU: make fake && LD_LIBRARY_PATH=build/fake make gpu" >&2
	exit 7
	;;
esac
device=${device%%; can compute*} fake=
case $device in "emulated device"*) fake=1 ;; esac
RESULTS=${RESULTS:-${fake:+build/fake/RESULTS.md}}
RESULTS=${RESULTS:-kernels/cuda/RESULTS.md}

for prefix in "" "bf16 "; do
	digest=$(field "${prefix}digest")
	case $digest in
	*"as on every machine of the class"*) judge "training, ${prefix:-float32 }digest" "passed: $digest" ;;
	*) bad=1 && judge "training, ${prefix:-float32 }digest" "FAILED: ${digest:-$(field "${prefix}same bits")}" ;;
	esac
done

# The first thing to know of a new generation: whether its tensor cores compute what the class says.
limited 40 "$TESTS" -test.v -test.run 'TestTensorCore$' >"$work/out" 2>&1
code=$?
case $code in
0)
	if grep -q '^--- PASS: TestTensorCore' "$work/out"; then
		judge "tensor cores = class matrix/16x25" "passed: $(grep -c '^ *--- PASS: TestTensorCore/' "$work/out") kinds of numbers"
		classes="f32 bf16 matrix"
	else
		judge "tensor cores = class matrix/16x25" "not tried: $(messages "$work/out" | head -n 1)"
		classes="f32 bf16"
	fi ;;
124)
	bad=1 classes="f32 bf16"
	judge "tensor cores = class matrix/16x25" "stopped at its time limit" ;;
*)
	bad=1 classes="f32 bf16"
	judge "tensor cores = class matrix/16x25" "FAILED: $(grep -o '^ *--- FAIL: TestTensorCore/[^ ]*' "$work/out" |
		sed 's/.*TestTensorCore.//' | paste -sd ' ')"
	grep -v '^=== ' "$work/out" >&2
	differs=$work/differs
	grep -A 6 -m 1 'plus the products of' "$work/out" >"$differs" ;;
esac

# The same sums, all products, and attention by wgmma, which they take where its bits are those of mma.sync.
case $classes in
*matrix)
	checks=$CHECKS
	tests='TestWgmmaBits$|' # of all tiles by themselves
	[ "$checks" != . ] || checks='(MatMul|Logits|LogProbBackward|^Attention$)' tests=$tests'TestWgmmaAttention$|'
	limited 60 sh -c 'tests=$2
	for tiles in wgmma_ thin_ slim_; do
		EXP_CUDA_TEST_TILES=$tiles "$0" -test.short -test.v -test.run "$tests$1" || exit
		tests=
	done' "$TESTS" 'TestTensorCore$|TestConformance/matrix/'"$checks" "$tests" >"$work/out" 2>&1
	code=$?
	case $code in
	0)
		if grep -q '^--- PASS: TestWgmmaBits' "$work/out"; then
			judge "wgmma = mma.sync" "passed: $(grep -c '^ *--- PASS: Test[A-Za-z]*/' "$work/out") shapes and kinds of numbers"
		else
			judge "wgmma = mma.sync" "not tried: $(messages "$work/out" | head -n 1)"
		fi ;;
	124) bad=1 && judge "wgmma = mma.sync" "stopped at its time limit; EXP_WGMMA=0 keeps products and attention off wgmma" ;;
	*)
		bad=1
		judge "wgmma = mma.sync" "FAILED: $(grep -o '^ *--- FAIL: Test[A-Za-z]*/[^ ]*' "$work/out" | sed 's/.*: Test//' |
			paste -sd ' '); EXP_WGMMA=0 keeps products and attention off wgmma"
		grep -v '^=== ' "$work/out" >&2 ;;
	esac ;;
esac

for class in $classes; do
	limited 60 "$TESTS" -test.v -test.run "TestConformance/$class/$CHECKS" >"$work/out" 2>&1
	code=$?
	passed=$(grep -c "^ *--- PASS: TestConformance/$class/" "$work/out")
	case $code:$passed in
	0:0) bad=1 && judge "conformance, $class" "FAILED: no check ran" && cat "$work/out" >&2 ;;
	0:*) judge "conformance, $class" "passed: $passed checks" ;;
	124:*) bad=1 && judge "conformance, $class" "FAILED: not done in time; $passed checks passed" ;;
	*) bad=1 && judge "conformance, $class" "FAILED: $(grep -o "^ *--- FAIL: TestConformance/$class/[^ ]*" "$work/out" |
		sed 's/.*: TestConformance.//' | paste -sd ' ')" && grep -v '^=== ' "$work/out" >&2 ;;
	esac
done

# settings CLASS prints the smoke recipe's in a numerics class.
settings() {
	case $1 in
	matrix) # one CPU thread emulates the class
		echo --set model.dtype=bf16 --set compute.numerics=matrix/16x25 --set sft.steps=2 \
			--set sft.optim.warmup_steps=0 --set train.steps=2 --set eval.final.n=1 ;;
	*) echo --set model.dtype="$1" ;;
	esac
}

for class in $classes; do
	began=$(milliseconds)
	sets=$(settings "$class")
	case " ${RUNS:-$classes} " in *" $class "*) ;; *) continue ;; esac
	for where in cpu cuda; do
		within 25 "$EXP" -q run configs/smoke_cpu.yaml --device $where $sets --store "$work/$where" 2>&1 &&
			"$EXP" show @last --json --store "$work/$where" | grep -m 2 -E '"(run|chain)":' >"$work/ids.$where"
	done >"$work/out"
	if [ -s "$work/ids.cuda" ] && cmp -s "$work/ids.cpu" "$work/ids.cuda"; then
		judge "smoke run, $class" "passed: run and chain of the CPU, $(sed -n 's/.*"run": "\(........\).*/\1/p' "$work/ids.cuda")"
	else
		bad=1 && judge "smoke run, $class" "FAILED: not the run of the CPU" && cat "$work/out" >&2
	fi
done

limited 20 "$TESTS" -test.run '^$' -test.bench Memory -test.benchtime 100ms >"$work/memory" 2>&1 ||
	{ bad=1 && judge "measuring memory" "FAILED" && cat "$work/memory" >&2; }
: >"$work/products"
: >"$work/large"
: >"$work/vendor"
case $classes in
*matrix)
	limited 60 "$TESTS" -test.run '^$' -test.bench "7B\$/$BENCH" -test.benchtime 20ms >"$work/products" 2>&1
	code=$?
	# Those of a micro-batch by mma.sync too, where wgmma was chosen.
	within 30 env EXP_CUDA_TEST_TILES=large_ "$TESTS" -test.run '^$' -test.bench "7B\$/$BENCH/.*/M=4096" \
		-test.benchtime 20ms >"$work/large" 2>&1
	case $code in
	0) judge "measuring products of 7B" "done" ;;
	124) judge "measuring products of 7B" "stopped at its time limit" ;;
	*) bad=1 && judge "measuring products of 7B" "FAILED" && cat "$work/products" >&2 ;;
	esac
	# The same by NVIDIA's library: a yardstick, which fails nothing.
	limited 60 "$TESTS" -test.v -test.run '^$' -test.bench "CublasLt/$BENCH" -test.benchtime 20ms >"$work/vendor" 2>&1
	case $?:$(grep -c '^--- SKIP' "$work/vendor") in
	0:0) judge "measuring cuBLASLt" "done: $(messages "$work/vendor" | head -n 1)" ;;
	0:*) judge "measuring cuBLASLt" "not tried: $(messages "$work/vendor" | head -n 1)" ;;
	124:*) judge "measuring cuBLASLt" "stopped at its time limit" ;;
	*) judge "measuring cuBLASLt" "failed: $(messages "$work/vendor" | tail -n 1)" && cat "$work/vendor" >&2 ;;
	esac ;;
esac
# What is no plain product in a model of 7B, then every operation of a small model in each class.
: >"$work/operations"
: >"$work/kernels"
measure() { # WHAT SECONDS BENCHMARKS FILE
	limited "$2" "$TESTS" -test.run '^$' -test.bench "$3" -test.benchtime 10ms >"$work/out" 2>&1
	code=$?
	cat "$work/out" >>"$work/$4"
	case $code in
	0) judge "measuring $1" "done" ;;
	124) judge "measuring $1" "stopped at its time limit" ;;
	*) bad=1 && judge "measuring $1" "FAILED" && cat "$work/out" >&2 ;;
	esac
}
case $classes in
*matrix) measure "operations of 7B" 60 "7BOperations/$BENCH" operations ;;
esac
for class in $classes; do
	measure "kernels, $class" 30 "Kernels/$class/$BENCH" kernels
done

# A model of 0.5 billion parameters with random weights: training, log-probs and sampling.
: >"$work/model"
case $classes:$BENCH:$fake in
*matrix:.:)
	limited 60 "$EXP" bench --device cuda --numerics matrix/16x25 --layers 24 --width 896 --heads 14 --kv-heads 2 --ffn 4864 \
		--vocab 151936 --only train,logprob,sample --batch 8 --length 1024 --repeat 2 >"$work/model" 2>"$work/out"
	case $? in
	0) judge "measuring a model of 0.5B" "done" ;;
	124) judge "measuring a model of 0.5B" "stopped at its time limit" ;;
	*) bad=1 && judge "measuring a model of 0.5B" "FAILED" && cat "$work/out" >&2 ;;
	esac ;;
esac

# sanitize TOOL WHAT COMMAND… runs a command under a tool of compute-sanitizer, which slows kernels down many times. It
# does not report calls of the driver that fail: the program tries some that a device may refuse. Races take it longer.
sanitize() {
	tool=$1 what=$2
	shift 2
	limit=30
	[ "$tool" = memcheck ] || limit=60
	limited $limit compute-sanitizer --tool "$tool" --target-processes application-only --report-api-errors no \
		--error-exitcode 9 "$@" >"$work/out" 2>&1
	code=$?
	summary=$(sed -n 's/^=* *\([A-Z]* *SUMMARY: \)/\1/p' "$work/out" | tail -n 1)
	[ $code != 124 ] || summary=$(sed -n 's/^=* *\(Invalid \|Error: Race \)/\1/p' "$work/out" | head -n 1)
	case $code:$summary in
	0:?*) judge "$tool, $what" "passed: $summary" ;;
	124:) judge "$tool, $what" "stopped at its time limit" ;;
	*:?*) bad=1 && judge "$tool, $what" "FAILED: $summary; exit code $code" && cat "$work/out" >&2 ;;
	*) judge "$tool, $what" "not tried: $(sed -n '$s/^=* *//p' "$work/out")" ;;
	esac
}

began=$(milliseconds)
if [ -n "$fake" ]; then
	judge "compute-sanitizer" "not tried: the driver is fake"
elif command -v compute-sanitizer >/dev/null; then
	for tool in memcheck racecheck; do
		case $classes in
		*matrix) # the smoke recipe is too small for wgmma
			sanitize $tool "products by wgmma" "$TESTS" -test.short -test.run 'TestWgmmaBits$'
			for tiles in wgmma_ thin_ slim_; do
				[ $tool = memcheck ] || break # races take too long
				export EXP_CUDA_TEST_TILES=$tiles
				sanitize $tool "products of $tiles" "$TESTS" -test.short \
					-test.run 'TestConformance/matrix/(MatMul|Logits|LogProbBackward)'
			done
			unset EXP_CUDA_TEST_TILES
			sanitize $tool "attention by wgmma" "$TESTS" -test.short -test.run 'TestWgmmaAttention$|TestPanelsOfPages' ;;
		esac
		sanitize $tool "rows in shared memory" "$TESTS" -test.short -test.run 'TestLong|TestAttend'
		sanitize $tool "linear attention" "$TESTS" -test.short \
			-test.run 'TestDeltaHeads|TestConformance/f32/(ShortConv|Delta|GatedNorm)'
	done
	for tool in memcheck racecheck; do
		sanitize $tool "smoke run, $class" "$EXP" -q run configs/smoke_cpu.yaml --device cuda $sets --store "$work/$tool"
	done
else
	judge "compute-sanitizer" "not tried: PATH does not have it; it is part of NVIDIA's toolkit"
fi

{
	[ -s "$RESULTS" ] || printf '# Results on GPUs\n\n`make gpu` appends to this file.\n'
	printf '\n## %s: %s\n\n' "$(date -u +%Y-%m-%d)" "$device"
	[ -z "$fake" ] || printf '**This is the fake driver, not a GPU: the figures mean nothing.**\n\n'
	printf 'Driver: %s. Program: %s. ' "$(field driver)" "$(field version)"
	printf 'Driver version, clock, power limit: %s.\n\n' \
		"$(nvidia-smi -i 0 --query-gpu=driver_version,clocks.max.sm,power.limit --format=csv,noheader 2>/dev/null || echo unknown)"
	printf '| test | result | s |\n|---|---|---:|\n'
	cat "$work/tests"
	[ ! -s "$work/differs" ] || { printf '\nThe first step that differs:\n\n' && sed 's/^ */    /' "$work/differs"; }
	awk '
	function product() { return part[2] "/" part[3] "/" part[4] "/" part[5] "/" part[6] }
	function rate(unit,   i) { for (i = 4; i < NF; i++) if ($(i + 1) == unit) return $i; return 0 }
	/^Benchmark/ && / ns\/op/ { sub(/-[0-9]+$/, "", $1); n = split($1, part, "/") }
	/^BenchmarkCublasLt/ && / ns\/op/ { vendor[product()] = rate("GFLOP/s") / 1000 }
	/^BenchmarkMemory/ && / ns\/op/ {
		if (part[2] == "Copy") copy = rate("MB/s")
		if (!memory++) print "\n| memory | GB/s |\n|---|---:|"
		printf "| %s | %.1f |\n", part[2], rate("MB/s") / 1000
	}
	/^Benchmark7B\// && / ns\/op/ {
		if (!products++) {
			print "\n| product of 7B | layer | dims | tiles | ms | TFLOP/s | cuBLASLt TFLOP/s | of cuBLASLt |"
			print "|---|---|---|---|---:|---:|---:|---:|"
		}
		by = vendor[product()]
		tflops = rate("GFLOP/s") / 1000
		gsub(/_/, " ", part[3])
		printf "| %s | %s | %s %s %s | %s | %.3f | %.1f | %s | %s |\n", part[2], part[3], part[4], part[5], part[6],
			FILENAME ~ /large$/ ? "mma.sync" : "chosen", rate("ns/product") / 1e6, tflops, by ? sprintf("%.1f", by) : "",
			by ? sprintf("%.1f %%", 100 * tflops / by) : ""
	}
	/^Benchmark7BOperations/ && / ns\/op/ {
		if (!operations++) print "\n| operation of 7B | dims | ms | TFLOP/s | GB/s | of Copy |\n|---|---|---:|---:|---:|---:|"
		dims = part[3]
		for (i = 4; i <= n; i++) dims = dims " " part[i]
		flops = rate("GFLOP/s")
		moved = rate("MB/s")
		printf "| %s | %s | %.3f | %s | %s | %s |\n", part[2], dims, rate("ns/call") / 1e6, flops ? sprintf("%.1f", flops / 1000) : "",
			moved ? sprintf("%.1f", moved / 1000) : "", moved && copy ? sprintf("%.1f %%", 100 * moved / copy) : ""
		next
	}
	/^BenchmarkKernels/ && / ns\/op/ {
		if (!kernels++) print "\n| kernel | dims | class | ms | GB/s | of Copy | GFLOP/s |\n|---|---|---|---:|---:|---:|---:|"
		dims = part[5]
		for (i = 6; i <= n; i++) dims = dims " " part[i]
		flops = rate("GFLOP/s")
		printf "| %s | %s | %s | %.3f | %.1f | %s | %s |\n", part[3], dims, part[2], $3 / 1e6, rate("MB/s") / 1000,
			copy ? sprintf("%.1f %%", 100 * rate("MB/s") / copy) : "", flops ? sprintf("%.1f", flops) : ""
	}' "$work/vendor" "$work/memory" "$work/products" "$work/large" "$work/operations" "$work/kernels"
	[ ! -s "$work/model" ] || { printf '\nexp bench of a model of 0.5B:\n\n' && sed 's/^/    /' "$work/model"; }
} >"$work/results"
mkdir -p "$(dirname "$RESULTS")"
cat "$work/results" >>"$RESULTS"
[ -z "$fake" ] || echo "This is the fake driver, not a GPU: the figures mean nothing." >&2
echo "results: $RESULTS" >&2
exit $bad
