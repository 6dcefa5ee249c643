// Package torchfile reads the files of torch.save (.pt, .pth, .bin, .ckpt) and bare pickles
// without Python.
//
// A file is a zip archive of stored entries under one folder: data.pkl, a pickle where
// storages are references, and data/KEY, the elements of storage KEY. Open decodes the
// pickle to data and calls nothing: a global is a name, and what a pickle would construct
// is a node with that name, its arguments and its state. Nodes of torch's own functions can
// be read as tensors; others are opaque, which is an error only for whoever wants a tensor
// from them.
//
// Files are not trusted. Every length is checked against the file before anything of that
// size is allocated, and a pickle takes at most some 40 bytes of memory for each of its
// own, with limits on top: see the constants of decode.go. Tensors are located, not read: Tensor.Extent says
// where the elements lie.
package torchfile
