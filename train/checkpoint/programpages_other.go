//go:build !linux

package checkpoint

// dropProgramPages does nothing: it is written for Linux alone.
func dropProgramPages() {}
