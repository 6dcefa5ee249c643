//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Pool runs programs, as many at once as it has slots; further ones wait. It is safe
// for concurrent use.
type Pool struct {
	m      *machine
	cfg    Config
	probes []Probe
	idle   chan seat
	next   atomic.Uint64
	builds builds
	apart  bool // tests of mode call one by one, to compare with

	mu        sync.Mutex
	infra     int64
	lastInfra error

	pairs   sync.Mutex // held while waiting for two slots
	closing sync.Once
	closed  chan struct{}
}

// seat is the right to run one program at a time, and the slots that were started for
// it: "" is Python's, which runs compiled programs too; a language's own sees its toolchain.
type seat map[string]*slot

func (s seat) close() (err error) {
	for view, slot := range s {
		err = errors.Join(err, slot.close())
		delete(s, view)
	}
	return err
}

// Open tries what this machine gives, and starts the slots. It returns a *LevelError
// where that is less than cfg requires.
func Open(ctx context.Context, cfg Config) (*Pool, error) {
	var err error
	if cfg.Limits, err = cfg.Limits.filled(DefaultLimits()); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if cfg.Require == "" {
		cfg.Require = Namespaces
	}
	if !slices.Contains(Levels(), cfg.Require) {
		return nil, fmt.Errorf("sandbox: no level %q to require: there are %v", cfg.Require, Levels())
	}
	m, probes, err := probe(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if !m.level.AtLeast(cfg.Require) {
		e := &LevelError{Required: cfg.Require, Have: m.level}
		for _, p := range probes {
			if !p.OK {
				e.Probes = append(e.Probes, p)
			}
		}
		return nil, e
	}
	if cfg.Slots <= 0 {
		cfg.Slots = max(1, len(m.cpus))
	}
	p := &Pool{m: m, cfg: cfg, probes: probes, idle: make(chan seat, cfg.Slots), closed: make(chan struct{}),
		builds: builds{known: map[[32]byte]*build{}, tools: map[string]*tool{}}}
	for range cfg.Slots {
		s, err := p.newSeat()
		if err != nil {
			for len(p.idle) > 0 {
				err = errors.Join(err, (<-p.idle).close())
			}
			return nil, err
		}
		p.idle <- s
	}
	return p, nil
}

// newSeat starts Python's slot; in a pool of cold starts the one who runs does.
func (p *Pool) newSeat() (seat, error) {
	if p.cfg.Cold {
		return seat{}, nil
	}
	s, err := newSlot(p.m, p.next.Add(1), nil)
	return seat{"": s}, err
}

// Level is the isolation that programs get.
func (p *Pool) Level() Level { return p.m.level }

// Probes are what was tried when the pool was opened.
func (p *Pool) Probes() []Probe { return p.probes }

// Slots is how many programs run at once.
func (p *Pool) Slots() int { return p.cfg.Slots }

// InfraErrors is how often a slot broke, with those where the retry went well, and why
// the last one did.
func (p *Pool) InfraErrors() (n int64, last error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.infra, p.lastInfra
}

func (p *Pool) broke(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.infra, p.lastInfra = p.infra+1, err
}

// Python is the interpreter, "3.11.7".
func (p *Pool) Python() string { return p.m.python.Version }

// Interpreter is the path of the interpreter's binary.
func (p *Pool) Interpreter() string { return p.m.python.Exe }

// CPUTime is what the pool's slots have used, with the programs that ended in them. It
// waits for those that run.
func (p *Pool) CPUTime() (total time.Duration, err error) {
	var held []seat
	defer func() {
		for _, at := range held {
			p.idle <- at
		}
	}()
	for range p.cfg.Slots {
		at, err := p.take(context.Background())
		if err != nil {
			return 0, err
		}
		held = append(held, at)
		for _, s := range at {
			total += cpuOf(s.command.Process.Pid)
		}
	}
	return total, nil
}

// Close ends all slots. It waits for the runs that are going on; further ones fail.
func (p *Pool) Close() (err error) {
	p.closing.Do(func() {
		close(p.closed)
		for range p.cfg.Slots {
			err = errors.Join(err, (<-p.idle).close())
		}
	})
	return err
}

// take waits for a seat.
func (p *Pool) take(ctx context.Context) (seat, error) {
	select {
	case s := <-p.idle:
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, errors.New("the pool is closed")
	}
}

// inSlot runs j in a slot of the seat, which it starts if there is none, and ends if it
// broke. Our copies of the job's channel are closed as soon as the program has its own.
func (p *Pool) inSlot(ctx context.Context, at seat, j job) (r Run, err error) {
	defer func() { closeAll(j.channel) }()
	s := at[j.view]
	if s == nil {
		var more []bind
		if l, ok := languageNamed(j.view); ok {
			t, err := p.tool(ctx, l)
			if err != nil {
				return r, err
			}
			more = t.binds
		}
		if s, err = newSlot(p.m, p.next.Add(1), more); err != nil {
			return r, err
		}
		at[j.view] = s
	}
	r, err = s.run(ctx, &j)
	if err != nil || p.cfg.Cold {
		err = errors.Join(err, s.close())
		delete(at, j.view)
	}
	return r, err
}

// sharesVisits tells whether several tests may run in one visit. It takes Landlock, by
// which their scratch directory is closed, and further processes.
func (p *Pool) sharesVisits() bool {
	return !p.apart && !p.cfg.Cold && p.m.landlock > 0 && p.m.level.AtLeast(Namespaces)
}

// execute runs j in a slot of the pool, on a broken slot once more in a fresh one.
func (p *Pool) execute(ctx context.Context, j job) (r Run, err error) {
	s, err := p.take(ctx)
	if err != nil {
		return r, err
	}
	defer func() { p.idle <- s }()
	for range 2 {
		if r, err = p.inSlot(ctx, s, j); err == nil || ctx.Err() != nil {
			return r, err
		}
		p.broke(err)
	}
	return r, err
}

// Check tries what this machine gives and says so, whatever is required.
func Check(ctx context.Context, cfg Config) (Level, []Probe, error) {
	m, probes, err := probe(ctx, cfg)
	if err != nil {
		return Unusable, probes, err
	}
	return m.level, probes, nil
}

// probe finds out by doing: it starts a slot, runs a program, and has another killed
// by the filter. The error is of ctx alone.
func probe(ctx context.Context, cfg Config) (*machine, []Probe, error) {
	m := &machine{level: Unusable, root: ownsBlocks(), landlock: landlockABI()}
	var list []Probe
	add := func(name string, err error, text, help string) bool {
		if err != nil {
			list = append(list, Probe{Name: name, Text: err.Error(), Help: help})
			return false
		}
		list = append(list, Probe{Name: name, OK: true, Text: text})
		return true
	}
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) == nil {
		for cpu := range len(set) * 64 {
			if set.IsSet(cpu) {
				m.cpus = append(m.cpus, cpu)
			}
		}
	}
	var err error
	m.python, err = findPython(ctx, cfg.Python)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	found := add("python", err, "Python "+m.python.Version+", "+m.python.Exe,
		"install Python 3.9 or newer, or name another interpreter")
	if m.landlock > 0 {
		add("landlock", nil, fmt.Sprintf("ABI %d, a second layer over the mounts", m.landlock), "")
	} else {
		// Not a failure of the level: the mounts give the same.
		list = append(list, Probe{Name: "landlock", OK: true, Text: "none; files are hidden by mounts alone"})
	}
	if !found {
		return m, list, nil
	}
	if cfg.Most == Landlock {
		list = append(list, Probe{Name: "namespaces", Text: "not used, as was asked for"})
		return alone(ctx, m, list)
	}
	m.level = Namespaces
	err = trial(ctx, m)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if !add("namespaces", err, "user, mount, pid, network, IPC and UTS namespaces, system-call filter",
		namespaceHelp()) {
		return alone(ctx, m, list)
	}
	if cfg.Most != "" && cfg.Most != Full {
		list = append(list, Probe{Name: "cgroup", Text: "not used, as was asked for"})
		return m, list, nil
	}
	parents, err := usableParents()
	const help = "give the program a group of its own: systemd-run --user --scope -p Delegate=yes exp ..."
	if add("cgroup", err, "memory and processes are bounded in "+fmt.Sprint(parents.dirs()), help) {
		m.level, m.parents = Full, parents
	}
	return m, list, nil
}

// alone finds out whether level landlock can be had where namespaces cannot. The probe
// of that name is the second of the list.
func alone(ctx context.Context, m *machine, list []Probe) (*machine, []Probe, error) {
	p := &list[1]
	m.level = Unusable
	if m.landlock == 0 {
		*p = Probe{Name: "landlock", Text: "none, and without namespaces nothing else hides files",
			Help: "a kernel from 5.13 on that was booted with landlock among lsm= has it"}
		return m, list, nil
	}
	m.level = Landlock
	removeStaleFolders()
	err := trial(ctx, m)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err != nil {
		m.level = Unusable
		*p = Probe{Name: "landlock", Text: err.Error(),
			Help: "programs run under an id of their own: the interpreter and the folder of temporary files must be " +
				"open to every user; an interpreter can be named, such as /usr/bin/python3"}
		return m, list, nil
	}
	p.Text = fmt.Sprintf("ABI %d and a system-call filter, for Python programs of one process; not promised: %s",
		m.landlock, strings.Join(Landlock.Unpromised(), "; "))
	return m, list, nil
}

// ownsBlocks tells whether this process may give slots ids of their own: as root that
// was not made powerless by a container.
func ownsBlocks() bool {
	var data [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if os.Geteuid() != 0 || unix.Capget(&header, &data[0]) != nil || data[0].Effective&(1<<unix.CAP_SYS_ADMIN) == 0 {
		return false
	}
	text, _ := os.ReadFile("/proc/self/uid_map")
	for line := range strings.Lines(string(text)) {
		var inside, outside, size int64
		if n, _ := fmt.Sscan(line, &inside, &outside, &size); n == 3 && inside <= blockBase &&
			inside+size >= blockBase+blocks*blockSize {
			return true
		}
	}
	return false
}

// landlockABI is the version of Landlock that the kernel has, 0 for none.
func landlockABI() int {
	const version = 1 // LANDLOCK_CREATE_RULESET_VERSION
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, version)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// trial runs an honest program and one that the filter must kill.
func trial(ctx context.Context, m *machine) error {
	s, err := newSlot(m, 0, nil)
	if err != nil {
		return err
	}
	defer func() { _ = s.close() }()
	limits, err := Limits{}.filled(DefaultLimits())
	if err != nil {
		return err
	}
	r, err := s.run(ctx, &job{source: "print(6 * 7)", limits: limits})
	if err != nil {
		return err
	}
	if r.Status != OK || string(r.Stdout) != "42\n" {
		return fmt.Errorf("a trial program ended with %s %s: %s", r.Status, r.Detail, lastLine(r.Stderr))
	}
	attack := fmt.Sprintf("import ctypes\nctypes.CDLL(None).syscall(%d, 0, 0, 0, 0)", unix.SYS_PTRACE)
	r, err = s.run(ctx, &job{source: attack, limits: limits})
	if err != nil {
		return err
	}
	if r.Status != SecurityViolation {
		return fmt.Errorf("the system-call filter let a trial attack through: %s %s", r.Status, r.Detail)
	}
	return nil
}

// usableParents finds the cgroups of this process and tries them.
func usableParents() (parents, error) {
	cgroup, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return parents{}, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return parents{}, err
	}
	p, err := findParents(string(cgroup), string(mounts))
	if err != nil {
		return p, err
	}
	p.removeStale()
	if err := p.delegate(); err != nil {
		return p, err
	}
	g, err := newGroup(p, uint64(time.Now().UnixNano()))
	if err != nil {
		return p, err
	}
	defer g.remove()
	return p, g.bound(64<<20, 64)
}

// namespaceHelp names the setting of the kernel that most likely forbids namespaces.
func namespaceHelp() string {
	for _, setting := range []struct {
		file string
		bad  int64
		help string
	}{
		{"/proc/sys/user/max_user_namespaces", 0,
			"user.max_user_namespaces = 0: sysctl -w user.max_user_namespaces=15000"},
		{"/proc/sys/kernel/unprivileged_userns_clone", 0, "sysctl -w kernel.unprivileged_userns_clone=1"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1,
			"sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for exp that " +
				"allows userns"},
	} {
		if _, err := os.Stat(setting.file); err == nil && number(setting.file) == setting.bad {
			return setting.help
		}
	}
	return "in a container, its system-call profile may forbid unshare and mount (docker run --security-opt " +
		"seccomp=unconfined --security-opt systempaths=unconfined); Linux 5.12 or newer is needed"
}
