// Package ident defines when two things are "the same": the canonical encoding of values,
// digests (SHA-256) of weights, data and sources, the ids of experiments (xid), runs
// (rid) and stages (sid), labelled seeds, and the chain, a hash over all steps of a
// trajectory.
//
// Everything here is a pure function. Digests are compared for ever, so the input of a
// tag never changes: a change needs a new tag ("exp/run/2"). The package stores nothing
// and reads no clock.
package ident
