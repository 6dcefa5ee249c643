//go:build !linux

package run

// Systems other than Linux do not tell, or tell in other units: zero is "unknown".

func memoryBytes() int64  { return 0 }
func cpuSeconds() float64 { return 0 }
func peakMemory() int64   { return 0 }
