// Package megatron says where the elements of a Hugging Face model lie in a checkpoint of
// Megatron-LM (megatron-core's GPTModel), and reads and writes such checkpoints.
//
// # Layout
//
// A checkpoint has a file per rank: a tensor-parallel rank of a pipeline stage and a block
// of experts. A stage has one or several chunks of layers (virtual stages). Layout.Chunk
// lists the tensors of a chunk; each is tiled by rectangles of Hugging Face tensors:
//
//	qkv      groups of [queries | keys | values], then equal rows per rank
//	fc1      [gate rows of the rank | up rows of the rank]
//	proj,fc2 equal columns per rank
//	vocab    padded with copies of the last row, then equal rows per rank
//	norms    whole, on every rank
//
// Writing copies the rectangles one way, reading the other: both use this list.
//
// # Not covered
//
// Optimizer states; expert tensor parallelism that differs from tensor parallelism; models
// of legacy Megatron (before megatron-core); multi-head latent attention, Mamba, encoders.
package megatron
