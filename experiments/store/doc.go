// Package store is the experiment record: one SQLite database and a folder of blobs in
// one directory.
//
//	DIR/exp.db               runs, stages, steps, metrics, evaluations, samples
//	DIR/blobs/sha256/…       weights, problems, samples, sources (experiments/blob)
//	DIR/runs/RID/            a run's lock and checkpoints, logs per attempt
//	DIR/tmp/                 files being written
//
// Any number of processes may use a store at once; each has one writing connection and
// several reading ones. DESIGN.md describes the tables and the reasons for them; each
// table has a Go file with its name.
//
// The store keeps and compares. It does not compute run digests, its only cache decision
// is whether the outputs exist, and it removes only what it is told to (experiments/keep
// decides).
package store
