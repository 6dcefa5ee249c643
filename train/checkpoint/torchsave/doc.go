// Package torchsave writes files that torch.load reads: what torch.save writes for Python
// values and tensors. Package torchfile reads such files.
//
// A file is a zip archive of stored entries under one folder: data.pkl, a pickle of
// protocol 2 with references to storages, and data/KEY, the elements of storage KEY,
// each aligned to 64 bytes. Archives of more than 4 GiB have zip64 records. Elements are
// streamed; equal values give equal bytes.
package torchsave
