// Package blob keeps immutable files by the SHA-256 of their content:
//
//	ROOT/blobs/sha256/ab/cdef…    mode 0444
//	ROOT/tmp/                     where files are being written
//
// A blob is written to a file without a name, synced, linked into place and the
// folder synced, so that a file is complete or not there at all, also after a crash
// or on a full disk. Where the file system has no files without a name it is written
// to tmp and renamed, and a process that is killed leaves half a file there. Any
// number of processes may write to one root.
//
// A large file that was just written somewhere else becomes a blob without a second
// copy (Adopt): as a clone where the file system has them, or as a hard link.
//
// On top of that it packs many small records into few compressed blobs
// (PackWriter) and trees of source files into one (PutTree).
//
// It does not know which blobs are in use (experiments/store does), and does not
// re-hash what it opens: Verify does, on request. A file of the right size and the
// wrong bytes is found by Verify or Bytes only.
package blob
