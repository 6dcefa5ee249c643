// Package checkpoint keeps weights and training states on disk.
//
//   - Safetensors files, one or a sharded folder of them: Tensors reads them,
//     WriteSafetensors writes them, always the same bytes for the same tensors.
//   - Hugging Face folders: ReadConfig and OpenFolder take one in, MergeTensors
//     writes one and proves that it holds what was trained, bit for bit.
//   - Adapters in PEFT's layout: ReadAdapters takes a folder in, WriteAdapterTensors
//     writes one.
//   - Training checkpoints: Write stores the buffers that the next step reads,
//     LatestUpTo and Open find and verify them, Load puts them back.
//
// # Reading
//
// No file is believed. Lengths, offsets and shapes are checked against the size of
// the file before anything of that size is allocated, and what does not fit is an
// *Error that wraps ErrCorrupt and names the file and the tensor. Tensors are
// copied to the device in chunks: a model of any size needs one chunk of host
// memory.
//
// # Writing
//
// What is read back later is written to a directory of another name (".NAME.partial"
// beside the final one), synced, and renamed when it is whole. An error leaves what
// was there before and nothing else; a crash leaves a .partial directory, which the
// next write to that place, or RemoveInterrupted, removes. Two processes must not write
// to one place at once.
//
// # A training checkpoint
//
// It is a directory step-00000050 with one safetensors file per group of buffers
// and manifest.json, written last:
//
//	magic    "exp/checkpoint"
//	version  1
//	step     training steps done
//	state    the caller's own JSON
//	files    name, bytes and sha256 of each file
//	digest   sha256 of the manifest itself, in compact form, with an empty digest
//
// The package does not read PyTorch's pickled files, does not quantize, and knows
// nothing of the experiment record: identity is computed by the caller from Weights
// or Tensors.Sources.
package checkpoint
