//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ahead is more CPU time than the zygote uses outside a run: to fork and to prepare the next run.
const ahead = 5 * time.Millisecond

// conclude decides how the run ended. What the harness did or measured comes before what the program shows,
// which it can choose: it may send itself any signal and exit with any status.
func (x *execution) conclude() Run {
	a := x.answer
	status := syscall.WaitStatus(a.Status)
	r := Run{ExitCode: -1, CPU: max(time.Duration(a.CPU)-x.begun.setup, 0), MemoryKB: a.RSS,
		Stdout: x.out.data, Stderr: x.err.data, StdoutBytes: x.out.got,
		StdoutTruncated: x.out.got > int64(len(x.out.data)),
		result:          x.channel.data}
	if x.begun.released {
		r.Wall = time.Duration(a.At - x.begun.at)
	}
	switch {
	case status.Exited():
		r.ExitCode = status.ExitStatus()
	case status.Signaled():
		r.Signal = unix.SignalName(unix.Signal(status.Signal()))
	}
	kills := int64(0)
	if g := x.s.group; g != nil {
		kills = g.kills() - x.killsBase
		r.MemoryKB = max(0, g.peak()-x.s.base) >> 10
		// The group also counts processes that nobody waited for, the set-up, whose time is
		// known, and what the zygote does meanwhile for the next run, whose time is not.
		own := time.Duration(a.Own)
		if all := g.cpuTime() - x.cpuBase - x.begun.setup - own; all > r.CPU+ahead {
			r.CPU = all
		}
		x.usage.cpu -= own
	} else {
		// the kernel's peak of a process includes the time before it executed another program
		r.MemoryKB = max(0, a.RSS-x.s.anonKB, x.usage.memoryKB)
	}
	r.CPU = max(r.CPU, x.usage.cpu)
	cpuLimit := time.Duration(x.limits.CPUMS) * time.Millisecond
	r.Borderline = r.CPU > cpuLimit*9/10 && r.CPU < cpuLimit*11/10
	r.Status, r.Detail = x.verdict(r, status, kills > 0)
	return r
}

// verdict returns how the run with the measures r ended, and the detail. oom tells that the
// kernel killed a process of the group for its memory.
func (x *execution) verdict(r Run, status syscall.WaitStatus, oom bool) (Verdict, string) {
	l := x.limits
	cpuLimit, wallLimit := time.Duration(l.CPUMS)*time.Millisecond, time.Duration(l.WallMS)*time.Millisecond
	last := lastLine(x.err.data)
	if x.executed {
		last = firstError(x.err.data) // a runtime prints the reason before its stack
	}
	full := r.MemoryKB >= l.MemoryMB<<10*98/100
	switch {
	case status.Signaled() && status.Signal() == syscall.SIGSYS: // the filter lets nobody send one
		return SecurityViolation, "a system call that only an attack makes"
	case x.killed == "stdout" || x.killed == "stderr" || x.killed == "result":
		return OutputLimit, x.killed
	case x.killed == "memory" || oom:
		return MemoryLimit, "killed"
	case r.ExitCode > 0 && (strings.HasPrefix(last, "MemoryError") || strings.HasPrefix(last, "OSError: [Errno 12]") ||
		bytes.Contains(x.err.data, []byte("std::bad_alloc"))),
		r.Signal == "SIGABRT" && bytes.Contains(x.err.data, []byte("std::bad_alloc")),
		r.Signal != "" && bytes.Contains(x.err.data, []byte("JavaScript heap out of memory")),
		r.ExitCode == 2 && bytes.Contains(x.err.data, []byte("fatal error: runtime: cannot allocate memory")),
		r.ExitCode == 2 && bytes.Contains(x.err.data, []byte("fatal error: runtime: out of memory")):
		return MemoryLimit, "allocation refused"
	case x.killed == "wall" && full:
		return MemoryLimit, "out of time while the kernel reclaimed memory"
	case r.CPU > cpuLimit:
		return TimeLimit, "cpu"
	case x.killed == "wall" || r.Wall > wallLimit:
		return TimeLimit, "wall"
	case x.begun.syntax:
		return CompileError, last
	case r.Signal == "SIGXFSZ", r.ExitCode > 0 && strings.HasPrefix(last, "OSError: [Errno 27]"):
		return OutputLimit, "file"
	case r.Signal != "":
		return RuntimeError, r.Signal
	case r.ExitCode != 0:
		detail := fmt.Sprintf("status %d", r.ExitCode)
		if last != "" {
			detail += ": " + last[:min(len(last), 200)]
		}
		return RuntimeError, detail
	}
	return OK, ""
}
