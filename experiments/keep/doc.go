// Package keep maintains a store: Sweep finds what can be removed, Apply removes it, and
// Check verifies that all recorded data is present and unchanged.
//
// Kept are: all blobs that a remaining run needs, every file younger than an hour, or than a run being executed, that
// nothing refers to (a process may be about to record it), runs being executed, and pinned runs and
// checkpoints. A run is removed only if it was deleted and no other run depends on it; however
// recently that was, unless Options.OlderThan says otherwise.
//
// The database file does not shrink; SQLite reuses the pages of removed rows.
package keep
