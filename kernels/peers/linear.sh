#!/bin/sh
# Measures exp and Transformers in turns on a model with linear attention, of Qwen3.5's shape with random
# weights: reading prompts, sampling, and a training step. It needs Python 3 with venv, 2 GB of disk, PyPI
# and Go. The packages and the model stay in FOLDER. From the root of the repository:
#
#	make build
#	kernels/peers/linear.sh FOLDER [TOGETHER...]    1, 8 and 64 completions at a time
#
#	EXP=bin/exp THREADS=2 TURNS=3 PROMPT=128 NEW=16 BATCH=4 LENGTH=256 KINDS="f32 bf16"
#	PYTHON=FILE    an interpreter that has the packages
set -e
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mkdir -p "${1:?FOLDER}" && cd "$1" && pwd) && shift
[ $# -gt 0 ] || set -- 1 8 64
exp=${EXP:-bin/exp} threads=${THREADS:-2} turns=${TURNS:-3} python=${PYTHON:-$folder/venv/bin/python}
export PROMPT="${PROMPT:-128}" NEW="${NEW:-16}" BATCH="${BATCH:-4}" LENGTH="${LENGTH:-256}"
[ -x "$exp" ] || { echo "$exp: no such program; run make build first, or name another: EXP=FILE" >&2; exit 2; }
if [ ! -x "$python" ]; then
	python3 -m venv "$folder/venv"
	"$python" -m pip install -q torch==2.15.0 transformers==5.24.0
fi
[ -f "$folder/model/config.json" ] || "$python" "$here/linear.py" write "$folder/model"
[ -x "$folder/train" ] || go test -c -o "$folder/train" ./harness/bench

for turn in $(seq "$turns"); do
	for kind in ${KINDS:-f32 bf16}; do
		for n in "$@"; do
			"$python" "$here/engine.py" "$exp" "$folder/model" $kind "$threads" 1 "$n"
			"$python" "$here/linear.py" sample "$folder/model" $kind "$threads" 1 "$n"
		done
		FOLDER=$folder/model DTYPE=$kind THREADS=$threads "$folder/train" -test.run '^$' -test.bench TrainFolder \
			-test.benchtime 2x | grep tok/s
		"$python" "$here/linear.py" train "$folder/model" $kind "$threads" 2 "$BATCH" "$LENGTH"
	done
done
