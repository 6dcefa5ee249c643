// Package checkpoint stores weights and training states on disk.
//
//   - Safetensors files, one or a sharded folder of them: Tensors reads them,
//     WriteSafetensors writes them, always the same bytes for the same tensors.
//   - Hugging Face folders: ReadConfig and OpenFolder take one in, MergeTensors
//     writes one and proves that it holds what was trained, bit for bit.
//   - Adapters in PEFT's layout: ReadAdapters takes a folder in, WriteAdapterTensors
//     writes one.
//   - Containers of other trainers: FindContainer recognizes pickled weights and the files
//     of verl's and Megatron's ranks, OpenFolder reads them like a folder, Pack writes
//     them as one, and Spread cuts a model over such ranks.
//   - Training checkpoints: Write stores the buffers that the next step reads,
//     LatestUpTo and Open find and verify them, Load puts them back.
//
// # Reading
//
// Files are not trusted. Lengths, offsets and shapes are checked against the file size
// before anything of that size is allocated; a mismatch is an *Error that wraps ErrCorrupt
// and names the file and the tensor. Tensors are copied to the device in chunks: a model of
// any size needs one chunk of host memory.
//
// # Writing
//
// Everything that is read back later is written to a temporary directory (".NAME.partial"
// next to the final one), synced, and renamed when complete. An error leaves only what was
// there before; a crash leaves a .partial directory, which the next write to that place, or
// RemoveInterrupted, removes. Two processes must not write to one place at once.
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
// # Packages below
//
// extent composes the bytes of a tensor from ranges of files; torchfile decodes files of
// torch.save, and torchsave writes them; fsdp and megatron put the files of ranks together
// and cut models over them. fault holds their errors and ours.
//
// The package does not execute pickles, does not quantize, and knows nothing of the
// experiment record: the caller computes identity from Weights or Tensors.Sources.
package checkpoint
