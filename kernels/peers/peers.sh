#!/bin/sh
# Measures exp, llama.cpp and OpenVINO GenAI in turns, on a model of the shape of Qwen2.5-0.5B with
# random weights, and prints a line per measurement. It needs Python 3 with venv, 6 GB of disk and
# PyPI. The packages and the model stay in FOLDER.
#
#	kernels/peers/peers.sh FOLDER [TOGETHER...]    1, 8 and 64 completions at a time
#
#	EXP=bin/exp THREADS=2 TURNS=3 PROMPT=64 NEW=32
set -e
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?FOLDER} && shift
[ $# -gt 0 ] || set -- 1 8 64
exp=${EXP:-bin/exp} threads=${THREADS:-2} turns=${TURNS:-3}
export PROMPT="${PROMPT:-64}" NEW="${NEW:-32}"
mkdir -p "$folder"
[ -d "$folder/venv" ] || { python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" install -q xllamacpp openvino-genai gguf numpy; }
python=$folder/venv/bin/python
[ -f "$folder/f32.gguf" ] || "$python" "$here/model.py" "$folder"
for turn in $(seq "$turns"); do
	for n in "$@"; do
		for kind in bf16 f32; do
			"$python" "$here/engine.py" "$exp" "$folder/hf" $kind "$threads" 1 "$n"
			"$python" "$here/llamacpp.py" "$folder/$kind.gguf" "$threads" 1 "$n" 2>"$folder/llamacpp.log"
			"$python" "$here/genai.py" "$folder/f16.gguf" $kind "$threads" 1 "$n" 2>"$folder/genai.log"
		done
	done
done
