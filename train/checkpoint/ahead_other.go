//go:build !linux

package checkpoint

import "os"

// willNeed does nothing: reading ahead is left to the system.
func willNeed(*os.File, int64, int64) {}

// writeOut does nothing: writing to disk is left to the system.
func writeOut(*os.File, int64, int64) {}
