#!/bin/sh
# Assembles each kernel's PTX with NVIDIA's ptxas and writes what a thread takes to ASSEMBLY.md.
# It fails if a kernel spills registers, has a stack, takes a tenth more registers than the
# table said, or has products by wgmma that wait for each other. Without PTXAS, the assembler comes from a wheel into build/ptxas.
set -e
cd "$(dirname "$0")"
TABLE=${TABLE:-ASSEMBLY.md}
WHEEL=nvidia-cuda-nvcc==13.5.37
TARGETS="sm_80 sm_90a sm_100 sm_120"
if [ -z "$PTXAS" ]; then
	room=../../build/ptxas
	PTXAS=$room/nvidia/cu13/bin/ptxas
	if [ ! -f $PTXAS ]; then
		mkdir -p $room
		python3 -m pip download -q --no-deps --only-binary=:all: -d $room $WHEEL
		python3 -m zipfile -e $room/*.whl $room
		rm $room/*.whl
		chmod +x $PTXAS
	fi
fi
new=$(mktemp) && found=$(mktemp) && trap 'rm -f $new $found $new.cubin' EXIT
for target in $TARGETS; do
	for ptx in *.ptx; do
		case $target:$ptx in
		sm_90a:wgmma*) ;;
		*:wgmma*) continue ;; # for compute capability 9.0 alone
		esac
		$PTXAS -v -arch=$target "$ptx" -o $new.cubin 2>&1 | sed "s/^/$target ${ptx%.ptx} /" >>$found || exit 1
	done
done
awk -v targets="$TARGETS" -v version="$($PTXAS --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')" '
function fail(text) { print "assemble: " text >"/dev/stderr"; bad = 1 }
# A table from before: | kernel | module | sm_80 | ...
FILENAME != ARGV[2] {
	if ($0 ~ /^\| [a-z]/) {
		split($0, cell, " *[|] *")
		for (i = 1; i <= n; i++) old[cell[2], target[i]] = cell[3 + i]
	}
	next
}
/ error / || / fatal / || /Potential Performance Loss/ { fail($0) }
/Compiling entry function/ { split($0, part, "\047"); kernel = part[2]; module[kernel] = $2 }
/bytes stack frame/ {
	for (i = 3; i <= NF; i++)
		if ($i == "bytes" && $(i - 1) > 0) fail(kernel " on " $1 ": " $(i - 1) " bytes of " $(i + 1) " " $(i + 2))
}
/Used [0-9]+ registers/ {
	match($0, /Used [0-9]+/)
	registers[kernel, $1] = used = substr($0, RSTART + 5, RLENGTH - 5) + 0
	if (match($0, /[0-9]+ bytes smem/)) shared[kernel] = substr($0, RSTART, RLENGTH) + 0
	before = old[kernel, $1]
	if (before != "" && used > 1.1 * before) fail(kernel " on " $1 ": " used " registers, " before " before")
	count++
}
BEGIN { n = split(targets, target, " ") }
END {
	if (!count) fail("ptxas said nothing of registers")
	printf "# What the assembler makes of the kernels\n\n"
	print "Registers of a thread, by ptxas " version ". `make assemble` writes this file. No kernel spills registers or"
	print "has a stack. Shared memory is in bytes. The last column is the share of an H100 multiprocessor\047s"
	print "2,048 threads that can be resident, in blocks of 256.\n"
	printf "| kernel | module |"
	for (i = 1; i <= n; i++) printf " %s |", target[i]
	printf " shared | resident |\n|---|---|"
	for (i = 1; i <= n + 2; i++) printf "---:|"
	print ""
	for (kernel in module) {
		line = "| " kernel " | " module[kernel] " |"
		for (i = 1; i <= n; i++) line = line " " ((kernel, target[i]) in registers ? registers[kernel, target[i]] : "–") " |"
		blocks = int(65536 / (256 * int((registers[kernel, "sm_90a"] + 7) / 8) * 8))
		line = line " " shared[kernel] + 0 " | " int(100 * (blocks > 8 ? 8 : blocks) / 8) " % |"
		print line | "LC_ALL=C sort"
	}
	close("LC_ALL=C sort")
	exit bad
}' "$([ -f "$TABLE" ] && echo "$TABLE" || echo /dev/null)" $found >$new || exit 1
cp $new "$TABLE"
