// Package keep keeps the house of a store: it finds what can go (Sweep) and removes
// it (Apply), and it checks that everything that is recorded is there and is what
// it was (Check).
//
// What stays is marked from the runs: all blobs that a run which is not to go
// needs, whatever is younger than an hour, since a process may be about to record
// it, the runs that are being executed, and what is pinned. A run goes only if it
// was deleted and no other run depends on it.
//
// It does not shrink the database file: the pages of removed rows are used again.
package keep
