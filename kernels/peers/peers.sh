#!/bin/sh
# Measures exp, llama.cpp and OpenVINO GenAI in turns, on a model of the shape of Qwen2.5-0.5B with
# random weights, and prints a line per measurement. It needs Python 3 with venv, 6 GB of disk and
# PyPI. The packages and the model stay in FOLDER. From the root of the repository:
#
#	make build
#	kernels/peers/peers.sh FOLDER [TOGETHER...]    1, 8 and 64 completions at a time
#
#	EXP=bin/exp THREADS=2 TURNS=3 PROMPT=64 NEW=32
#
# torch_train.py beside it trains a model of the same kind with PyTorch (pip install torch).
set -e
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?FOLDER} && shift
[ $# -gt 0 ] || set -- 1 8 64
exp=${EXP:-bin/exp} threads=${THREADS:-2} turns=${TURNS:-3}
export PROMPT="${PROMPT:-64}" NEW="${NEW:-32}"
[ -x "$exp" ] || { echo "$exp: no such program; run make build first, or name another: EXP=FILE" >&2; exit 2; }
mkdir -p "$folder"
python=$folder/venv/bin/python
if [ ! -f "$folder/venv/ready" ]; then
	python3 -m venv "$folder/venv"
	"$python" -m pip install -q xllamacpp==2026.10.11549 openvino-genai==2026.4.1 gguf numpy
	touch "$folder/venv/ready"
fi
[ -f "$folder/f32.gguf" ] || "$python" "$here/model.py" "$folder"

# quiet runs a command whose standard error matters only if it fails.
quiet() { "$@" 2>"$folder/stderr.log" || { cat "$folder/stderr.log" >&2; exit 1; }; }

for turn in $(seq "$turns"); do
	for n in "$@"; do
		for kind in bf16 f32; do
			"$python" "$here/engine.py" "$exp" "$folder/hf" $kind "$threads" 1 "$n"
			quiet "$python" "$here/llamacpp.py" "$folder/$kind.gguf" "$threads" 1 "$n"
			quiet "$python" "$here/genai.py" "$folder/f16.gguf" $kind "$threads" 1 "$n"
		done
	done
done
