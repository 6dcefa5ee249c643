// Package blob keeps immutable files by the SHA-256 of their content:
//
//	ROOT/blobs/sha256/ab/cdef…    mode 0444
//	ROOT/tmp/                     files being written
//
// A blob is written to tmp, synced, renamed into place and the folder synced, so
// that under its final name a file is complete or not there at all, also after a
// crash or on a full disk. Any number of processes may write to one root.
//
// On top of that it packs many small records into few compressed blobs
// (PackWriter) and trees of source files into one (PutTree).
//
// It does not delete, does not know which blobs are in use (experiments/store
// does), and does not re-hash what it opens: Verify does, on request. A file of
// the right size and the wrong bytes is found by Verify or Bytes only.
package blob
