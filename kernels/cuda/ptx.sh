#!/bin/sh
# Compiles each kernel to PTX for compute capability 8.0 and PTX 8.0, which drivers from 525 load; wgmma*.cu for 9.0
# alone, in clusters of as many blocks as they say, if any. The first line of the output is the digest of this script, the headers and the source:
# TestPTXIsFresh computes it again.
set -e
cd "$(dirname "$0")"
CLANG=${CLANG:-clang-19}
for source in *.cu; do
	stamp=$(cat ptx.sh gpu.h args.h num.h wide.h warp.h sums.h row.h softmax.h sum.h sequence.h matrix.h steps.h tile.h products.h warpgroup.h wgmma.h turned.h heads.h span.h ring.h turns.h panel.h warpattention.h panelattention.h paneldq.h paneldkv.h attend.h delta.h deltarow.h "$source" | sha256sum | cut -d' ' -f1)
	ptx=${source%.cu}.ptx
	case $source in
	wgmma*) arch=sm_90a blocks=$(sed -n 's/^#define CLUSTER //p' "$source")
		clusters=${blocks:+"s/^\.maxntid .*/&\n.explicitcluster\n.reqnctapercluster $blocks, 1, 1/"} ;;
	*) arch=sm_80 clusters= ;;
	esac
	if [ "$(head -n 1 "$ptx" 2>/dev/null)" != "// $stamp" ]; then
		$CLANG -x cuda --cuda-gpu-arch=$arch --cuda-feature=+ptx80 --cuda-device-only -nocudainc -nocudalib \
			-fdeclspec -std=c++17 -O3 -ffp-contract=off -Wall -Werror -S "$source" -o "$ptx.new"
		{ echo "// $stamp" && sed "$clusters" "$ptx.new"; } >"$ptx"
		rm "$ptx.new"
	fi
done
