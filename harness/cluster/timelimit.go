package cluster

import (
	"fmt"
	"strconv"
	"strings"

	"exp/harness/config"
)

// timeLimit returns the seconds of a time limit as sbatch takes it: "30", "30:00", "12:00:00",
// "2-12", "2-12:00" or "2-12:00:00". Slurm rounds it up to minutes. ok is false if there is none,
// or if only Slurm can read it.
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

// WarningError says that Slurm would warn each job as soon as it starts.
type WarningError struct {
	Time         string
	SignalBefore int
}

func (e *WarningError) Error() string {
	return fmt.Sprintf("cluster.slurm.signal_before is %d seconds and cluster.slurm.time is %s: each job would be "+
		"asked to stop as soon as it starts", e.SignalBefore, e.Time)
}

// Hint says what to do.
func (e *WarningError) Hint() string {
	return "raise cluster.slurm.time or lower cluster.slurm.signal_before"
}

// ExitCode returns the code for wrong usage.
func (e *WarningError) ExitCode() int { return 2 }

// checkWarning checks that Slurm warns a job only after it has started.
func checkWarning(o config.Slurm) error {
	if limit, ok := timeLimit(o.Time); ok && o.SignalBefore >= limit {
		return &WarningError{o.Time, o.SignalBefore}
	}
	return nil
}
