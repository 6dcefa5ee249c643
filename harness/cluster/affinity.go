package cluster

import "runtime"

// counted numbers the processors that Go sees.
func counted() []int {
	cpus := make([]int, runtime.NumCPU())
	for i := range cpus {
		cpus[i] = i
	}
	return cpus
}
