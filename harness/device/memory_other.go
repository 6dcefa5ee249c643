//go:build !linux

package device

// HostMemory returns this machine's memory in bytes, 0 if unknown. Other systems do not report it alike.
func HostMemory() int64 { return 0 }
