//go:build !linux

package checkpoint

// DropProgramPages does nothing: it is written for Linux alone.
func DropProgramPages() {}
