package cluster

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Share is the part of the machine that one of several processes uses.
type Share struct {
	CPUs    []int // processors; none: all, where there is one NUMA node
	Threads int
}

// Divide divides processors among n processes. Where there are several NUMA nodes, each
// process stays on one, or on some if there are fewer processes, near its memory. Neighbours
// share a node. sys is the file system at /sys.
func Divide(sys fs.FS, allowed []int, n int) []Share {
	nodes := numaNodes(sys, allowed)
	shares := make([]Share, n)
	if len(nodes) < 2 {
		for i := range shares {
			shares[i].Threads = max(1, len(allowed)/n)
		}
		return shares
	}
	on := map[int]int{} // processes by the node that they start on
	for i := range shares {
		first := i * len(nodes) / n
		for _, cpus := range nodes[first:max(first+1, (i+1)*len(nodes)/n)] {
			shares[i].CPUs = append(shares[i].CPUs, cpus...)
		}
		on[first]++
	}
	for i := range shares {
		shares[i].Threads = max(1, len(shares[i].CPUs)/on[i*len(nodes)/n])
	}
	return shares
}

// numaNodes returns the allowed processors of each NUMA node that has some.
func numaNodes(sys fs.FS, allowed []int) [][]int {
	files, err := fs.Glob(sys, "devices/system/node/node[0-9]*/cpulist")
	if err != nil {
		return nil
	}
	slices.SortFunc(files, func(a, b string) int { return len(a) - len(b) }) // node10 after node9
	var nodes [][]int
	for _, f := range files {
		text, err := fs.ReadFile(sys, f)
		if err != nil {
			return nil
		}
		cpus, err := parseCPUs(strings.TrimSpace(string(text)))
		if err != nil {
			return nil
		}
		cpus = slices.DeleteFunc(cpus, func(c int) bool { return !slices.Contains(allowed, c) })
		if len(cpus) > 0 { // some nodes have only memory
			nodes = append(nodes, cpus)
		}
	}
	return nodes
}

// parseCPUs reads a list such as "0-3,8".
func parseCPUs(list string) (cpus []int, err error) {
	if list == "" {
		return nil, nil
	}
	for _, part := range strings.Split(list, ",") {
		lo, hi, ranged := strings.Cut(part, "-")
		if !ranged {
			hi = lo
		}
		first, err1 := strconv.Atoi(lo)
		last, err2 := strconv.Atoi(hi)
		if err1 != nil || err2 != nil || last < first || last > 1<<16 {
			return nil, fmt.Errorf("processors %q: %q is not a number or a range", list, part)
		}
		for c := first; c <= last; c++ {
			cpus = append(cpus, c)
		}
	}
	return cpus, nil
}
