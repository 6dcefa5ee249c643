// Package ident says what two things being "the same" means: the canonical
// encoding of values, digests of weights, data and sources, the keys of
// experiments, runs and stages, labelled seeds, and the chain that sums up a
// trajectory.
//
// Everything here is a pure function. A digest is made once and compared for
// ever, so what a tag hashes never changes: a change is a new tag ("exp/run/2").
// The package stores nothing and reads no clock.
package ident
