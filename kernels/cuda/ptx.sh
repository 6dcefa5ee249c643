#!/bin/sh
# Compiles each kernel to PTX for compute capability 8.0 and PTX 8.0, which drivers from 525
# load. The first line of the output is the digest of this script, the headers and the source:
# TestPTXIsFresh computes it again.
set -e
cd "$(dirname "$0")"
CLANG=${CLANG:-clang-19}
for source in *.cu; do
	stamp=$(cat ptx.sh gpu.h args.h num.h wide.h warp.h sums.h row.h softmax.h sum.h sequence.h matrix.h tile.h products.h heads.h "$source" | sha256sum | cut -d' ' -f1)
	ptx=${source%.cu}.ptx
	if [ "$(head -n 1 "$ptx" 2>/dev/null)" != "// $stamp" ]; then
		{
			echo "// $stamp"
			$CLANG -x cuda --cuda-gpu-arch=sm_80 --cuda-feature=+ptx80 --cuda-device-only -nocudainc -nocudalib \
				-fdeclspec -std=c++17 -O3 -ffp-contract=off -Wall -Werror -S "$source" -o -
		} >"$ptx.new"
		mv "$ptx.new" "$ptx"
	fi
done
