// Package keep maintains a store: Sweep finds what can be removed, Apply removes it, and
// Check verifies that all recorded data is present and unchanged.
//
// Kept are: all blobs that a remaining run needs, everything younger than an hour (a
// process may be about to record it), runs being executed, and pinned runs and
// checkpoints. A run is removed only if it was deleted and no other run depends on it.
//
// The database file does not shrink; SQLite reuses the pages of removed rows.
package keep
