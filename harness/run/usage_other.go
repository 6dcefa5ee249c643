//go:build !linux

package run

// Other systems do not report these, or use other units: zero means unknown.

func cpuSeconds() float64 { return 0 }
func peakMemory() int64   { return 0 }
