// Package blob keeps immutable files by the SHA-256 of their content:
//
//	ROOT/blobs/sha256/ab/cdef…    mode 0444
//	ROOT/tmp/                     where files are being written
//
// A blob is written to an unnamed file, synced and linked into place, and the folder is
// synced, so a file is complete or absent, even after a crash or on a full disk. If the
// file system has no unnamed files, blobs are written to tmp and renamed, and a killed
// process leaves a partial file there. Any number of processes may write to one root.
//
// A large file written elsewhere becomes a blob without a second copy (Adopt), as a clone
// or a hard link.
//
// The package also packs many small records into few compressed blobs (PackWriter) and
// trees of source files into one blob (PutTree).
//
// It does not know which blobs are in use (experiments/store does) and does not rehash
// blobs on opening: only Verify and Bytes detect a file of the right size with wrong
// bytes.
package blob
