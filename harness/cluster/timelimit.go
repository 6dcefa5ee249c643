package cluster

import (
	"fmt"
	"strconv"
	"strings"

	"exp/harness/config"
)

// timeLimit returns the seconds of a time limit as sbatch takes it: "30", "30:00", "12:00:00",
// "2-12", "2-12:00" or "2-12:00:00". Slurm rounds it up to minutes. ok is false for no limit,
// and for one that only Slurm can read.
func timeLimit(text string) (seconds int, ok bool) {
	days, clock, long := strings.Cut(text, "-")
	if !long {
		days, clock = "0", text
	}
	parts := strings.Split(clock, ":")
	units := []int{60, 1} // minutes, seconds
	if long || len(parts) == 3 {
		units = []int{3600, 60, 1}
	}
	if len(parts) > len(units) {
		return 0, false
	}
	n, err := strconv.Atoi(days)
	if err != nil {
		return 0, false
	}
	seconds = n * 24 * 3600
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil {
			return 0, false
		}
		seconds += n * units[i]
	}
	return (seconds + 59) / 60 * 60, seconds > 0 // 0: no limit
}

// checkWarning checks that Slurm warns a job only after it has started.
func checkWarning(o config.Slurm) error {
	if limit, ok := timeLimit(o.Time); ok && o.SignalBefore >= limit {
		return &SettingError{fmt.Sprintf("cluster.slurm.signal_before is %d seconds and cluster.slurm.time is %s: "+
			"each job would be asked to stop as soon as it starts", o.SignalBefore, o.Time),
			"raise cluster.slurm.time or lower cluster.slurm.signal_before"}
	}
	return nil
}
