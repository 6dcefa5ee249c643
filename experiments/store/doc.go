// Package store is the experiment record: one SQLite database and a folder of
// blobs below one directory.
//
//	DIR/exp.db               runs, stages, steps, metrics, evaluations, samples
//	DIR/blobs/sha256/…       weights, problems, samples, sources (experiments/blob)
//	DIR/runs/RID/            a run's lock and checkpoints, logs per attempt
//	DIR/tmp/                 files being written
//
// Any number of processes may use a store at once; each has one connection that
// writes and several that read. DESIGN.md beside this file describes the tables
// and why they are as they are; each table has a Go file of its name.
//
// The store keeps and compares; it computes no digest of a run, takes no
// decision about the cache beyond "the outputs are there", and removes only what it is
// told to (experiments/keep decides).
package store
