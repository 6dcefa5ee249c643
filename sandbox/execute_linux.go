//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// execution is a run in progress.
type execution struct {
	s      *slot
	limits Limits

	stdin           []byte // still to be written
	in              int    // our end of stdin; -1: closed
	out, err        stream
	channel         stream // a driver's output; fd -1: none
	status          stream // messages of the program's process before the program starts
	begun           begun
	deadline        time.Time // of the program; zero: not yet known
	executed        bool      // the program replaced the interpreter
	killed          string    // why the harness killed it; empty: not killed
	usage           usage     // measured by the watchdog
	cpuBase         time.Duration
	killsBase       int64
	initPID         int
	answered        bool
	answer          ended
	killedAt, began time.Time
}

// stream is an output of the program.
type stream struct {
	fd   int
	most int // bytes to keep
	data []byte
	got  int64
}

// watchdogEvery is the interval between measurements of a run.
const watchdogEvery = 10 * time.Millisecond

// grace is how long a slot may take to answer after a kill or after its time is up. It is long because on a
// loaded machine the kernel may need seconds to end many processes, and only errors wait for it.
const grace = 10 * time.Second

// run executes j in the slot. An error means that the sandbox failed: do not use the slot again.
func (s *slot) run(ctx context.Context, j *job) (_ Run, err error) {
	x := &execution{s: s, limits: j.limits, executed: j.program != nil, stdin: j.stdin, in: -1, began: time.Now()}
	x.out, x.err, x.channel = stream{fd: -1, most: int(j.limits.StdoutKB) << 10},
		stream{fd: -1, most: int(j.limits.StderrKB) << 10}, stream{fd: -1, most: 16 << 20}
	x.status = stream{fd: -1, most: 4 << 10}
	defer func() {
		closeFD(&x.in)
		closeFD(&x.out.fd)
		closeFD(&x.err.fd)
		closeFD(&x.channel.fd)
		closeFD(&x.status.fd)
		closeFD(&s.init)
		s.isReady = false
	}()
	if !s.isReady {
		if err := s.awaitReady(10 * time.Second); err != nil {
			return Run{}, err
		}
	}
	if err := x.release(j); err != nil {
		return Run{}, err
	}
	if err := x.watch(ctx); err != nil {
		return Run{}, err
	}
	if err := ctx.Err(); err != nil && x.killed != "" && x.killed == err.Error() {
		return Run{}, err
	}
	if x.begun.broken != "" || !x.begun.released && x.killed == "" {
		return Run{}, fmt.Errorf("set up the program: %s (status %d)", x.begun.broken, x.answer.Status)
	}
	return x.conclude(), nil
}

func closeFD(fd *int) {
	if *fd >= 0 {
		_ = unix.Close(*fd)
		*fd = -1
	}
}

// release creates the pipes and sends the request.
func (x *execution) release(j *job) error {
	request, err := json.Marshal(x.s.request(j))
	if err != nil {
		return err
	}
	memory, err := memoryFile(request)
	if err != nil {
		return err
	}
	theirs := []int{memory}
	defer func() { closeAll(theirs) }()
	pipe := func(ours *int, write bool) error {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			return err
		}
		if write {
			*ours, theirs = p[1], append(theirs, p[0])
		} else {
			*ours, theirs = p[0], append(theirs, p[1])
		}
		if owner := x.s.owner; owner > 0 { // else /dev/stdin and the like are closed to the program
			if err := unix.Fchown(theirs[len(theirs)-1], owner, owner); err != nil {
				return err
			}
		}
		return unix.SetNonblock(*ours, true)
	}
	if err := errors.Join(pipe(&x.in, true), pipe(&x.out.fd, false), pipe(&x.err.fd, false)); err != nil {
		return err
	}
	switch {
	case j.driver != "":
		if err := pipe(&x.channel.fd, false); err != nil {
			return err
		}
	case j.program != nil && len(j.program.executable) > 0:
		fd, err := sealed(j.program.executable)
		if err != nil {
			return err
		}
		theirs = append(theirs, fd)
	}
	if j.driver == "compile" {
		x.channel.most = int(j.limits.FileMB) << 20
	}
	theirs, j.channel = append(theirs, j.channel...), nil // closed with the others
	if err := pipe(&x.status.fd, false); err != nil {
		return err
	}
	if g := x.s.group; g != nil {
		if err := g.bound(x.s.base+j.limits.MemoryMB<<20, j.limits.Processes+2); err != nil {
			return fmt.Errorf("cgroup: %w", err)
		}
		x.cpuBase, x.killsBase = g.cpuTime(), g.kills()
	} else if x.s.init >= 0 {
		if x.initPID, err = pidOf(x.s.init); err != nil {
			return err
		}
	}
	x.feed() // fill the pipe before the program starts
	return send(x.s.sock, fmt.Append(nil, len(request)), theirs...)
}

// request returns the message that the program's process, not the zygote, reads.
func (s *slot) request(j *job) map[string]any {
	l := j.limits
	const mb = 1 << 20
	memory, address, cpu := l.MemoryMB*mb, int64(-1), (l.CPUMS+999)/1000+2
	processes := l.Processes
	if s.group == nil {
		address = max(4096, 4*l.MemoryMB) * mb
	}
	switch {
	case s.m.level == Landlock && s.owner == 0:
		processes += int64(s.m.threads.count()) // all that the user runs: without a namespace they count together
	case s.m.level == Landlock:
		processes++ // the zygote has the same id
	case !s.m.root:
		processes += 2 // the zygote and process 1 have the same id
	}
	data, stack := memory, min(64*mb, memory) // per thread; Python needs no more
	files := map[string]string{}
	r := map[string]any{"files": files, "scratch": fmt.Sprintf("mode=700,uid=%d,gid=%d,size=%d,nr_inodes=%d",
		programUID, programUID, l.ScratchMB*mb, l.ScratchFiles+1)}
	args := append([]string{}, j.args...)
	if m := j.program; m != nil {
		// Its runtime reserves address space that it never touches; the cgroup or the watchdog counts what
		// it really holds.
		data = address
		if len(m.executable) > 0 {
			stack = memory // limiting recursion is up to the runtime
		}
		args = append(slices.Clone(m.argv), args...)
		r["exec"], r["executable"] = environ(m.env), len(m.executable) > 0
		for name, text := range m.files {
			files[name] = base64.StdEncoding.EncodeToString(text)
		}
	} else {
		r["name"], files["main.py"] = "main.py", j.source
	}
	r["args"], r["frozen"] = args, j.frozen
	for name, data := range j.files {
		files[name] = base64.StdEncoding.EncodeToString(data)
	}
	// In the order of RLIMITS in zygote.py: soft, hard.
	r["rlimits"] = [][2]int64{{cpu, cpu + 1}, {data, data}, {address, address}, {l.FileMB * mb, l.FileMB * mb},
		{l.OpenFiles, l.OpenFiles},
		{stack, memory}, {processes, processes}, {0, 0}, {0, 0}, {0, 0}}
	if j.driver != "" {
		r["driver"], r["names"] = j.driver, j.names
	}
	if j.echo {
		r["echo"] = true
	}
	if j.seed != 0 {
		r["seed"] = j.seed
	}
	return r
}

// environ parses a list of NAME=VALUE.
func environ(list []string) map[string]string {
	by := make(map[string]string, len(list))
	for _, entry := range list {
		name, value, _ := strings.Cut(entry, "=")
		by[name] = value
	}
	return by
}

// feed writes as much of stdin as the pipe takes and closes it after the last byte.
func (x *execution) feed() {
	for x.in >= 0 {
		if len(x.stdin) == 0 {
			closeFD(&x.in)
			return
		}
		n, err := unix.Write(x.in, x.stdin)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return
		case err != nil: // the program stopped reading
			closeFD(&x.in)
		default:
			x.stdin = x.stdin[n:]
		}
	}
}

// drain reads the available bytes and reports whether the cap was exceeded.
func (s *stream) drain(buf []byte) (over bool) {
	for s.fd >= 0 {
		n, err := unix.Read(s.fd, buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return false
		case err != nil || n == 0:
			closeFD(&s.fd)
			return false
		}
		s.got += int64(n)
		s.data = append(s.data, buf[:min(n, s.most-len(s.data))]...)
		if s.got > int64(s.most) {
			return true
		}
	}
	return false
}

// watch serves the run until the zygote answers.
func (x *execution) watch(ctx context.Context) error {
	nextMeasure := x.began.Add(watchdogEvery / 2)
	for !x.answered {
		polled := []unix.PollFd{{Fd: int32(x.s.sock), Events: unix.POLLIN}, {Fd: int32(x.out.fd), Events: unix.POLLIN},
			{Fd: int32(x.err.fd), Events: unix.POLLIN}, {Fd: int32(x.channel.fd), Events: unix.POLLIN},
			{Fd: int32(x.in), Events: unix.POLLOUT}}
		wake := nextMeasure
		if !x.deadline.IsZero() && x.killed == "" && x.deadline.Before(wake) {
			wake = x.deadline
		}
		wait := max(0, time.Until(wake))
		if _, err := unix.Poll(polled, int(wait.Milliseconds())+1); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if polled[4].Revents != 0 {
			x.feed()
		}
		x.collect()
		if polled[0].Revents != 0 {
			if err := x.hear(); err != nil {
				return err
			}
			continue
		}
		now := time.Now()
		if now.After(nextMeasure) {
			nextMeasure = now.Add(watchdogEvery)
			if err := x.measure(ctx, now); err != nil {
				return err
			}
		}
		if !x.deadline.IsZero() && now.After(x.deadline) {
			x.kill("wall")
		}
	}
	x.collect() // the rest in the pipes; their other ends are closed
	x.hearBegun()
	return nil
}

// collect drains the outputs and kills a program that writes too much.
func (x *execution) collect() {
	if x.killed != "" && !x.answered {
		return
	}
	switch {
	case x.out.drain(x.s.buf[:]):
		x.kill("stdout")
	case x.err.drain(x.s.buf[:]):
		x.kill("stderr")
	case x.channel.drain(x.s.buf[:]):
		x.kill("result")
	}
}

// measure is the watchdog.
func (x *execution) measure(ctx context.Context, now time.Time) error {
	if x.killed != "" {
		if now.Sub(x.killedAt) > grace {
			return fmt.Errorf("no answer %v after the program was killed (%s)", grace, x.killed)
		}
		return nil
	}
	if !x.begun.released {
		x.hearBegun()
	}
	if now.Sub(x.began) > time.Duration(x.limits.WallMS)*time.Millisecond+2*grace {
		return fmt.Errorf("no answer after the program's time; it had begun: %v", x.begun.released)
	}
	if err := ctx.Err(); err != nil {
		x.kill(err.Error())
		return nil
	}
	if g := x.s.group; g != nil {
		if x.begun.released { // before that, usage may be the set-up's
			x.usage.cpu = g.cpuTime() - x.cpuBase - x.begun.setup
		}
		if g.kills() > x.killsBase { // the kernel killed one of its processes
			x.kill("memory")
			return nil
		}
	} else {
		now := treeUsage(x.parent(), x.initPID, x.shared())
		if now.cpu -= x.begun.setup; !x.begun.released {
			now.cpu = 0
		}
		x.usage.add(now)
		if most := x.limits.MemoryMB << 10; x.usage.memoryKB > max(most, x.s.anonKB-x.shared()) {
			x.kill("memory")
			return nil
		}
	}
	most := time.Duration(x.limits.CPUMS) * time.Millisecond
	if x.s.group != nil {
		most += ahead
	}
	if x.usage.cpu > most {
		x.kill("cpu")
	}
	return nil
}

// parent returns the zygote, whose children are the program and, in namespaces, process 1.
func (x *execution) parent() int {
	if x.s.m.level == Landlock {
		return x.s.command.Process.Pid
	}
	return 0
}

// shared returns how much memory each process shares with the zygote: the zygote's whole memory until it
// executes another program, then nothing.
func (x *execution) shared() int64 {
	if x.executed {
		return 0
	}
	return x.s.anonKB
}

// kill ends all processes of the run; the zygote will report it.
func (x *execution) kill(why string) {
	if x.killed != "" || x.answered {
		if x.killed == "" {
			x.killed = why
		}
		return
	}
	x.killed, x.killedAt = why, time.Now()
	if x.s.init < 0 { // the zygote has the program's pidfd
		_ = send(x.s.sock, []byte("kill"))
		return
	}
	_ = unix.PidfdSendSignal(x.s.init, unix.SIGKILL, nil, 0)
}
