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

// Pool runs programs, as many at once as it has slots; others wait. It is safe for concurrent use.
type Pool struct {
	m      *machine
	cfg    Config
	probes []Probe
	idle   chan seat
	next   atomic.Uint64
	builds builds
	apart  bool // run tests of mode call one by one, for comparison

	mu        sync.Mutex
	infra     int64
	lastInfra error

	pairs   sync.Mutex // held while waiting for two slots
	closing sync.Once
	closed  chan struct{}
}

// seat is the right to run one program at a time, with the slots started for it. "" is Python's, which also
// runs compiled programs; a language's own slot sees its toolchain.
type seat map[string]*slot

func (s seat) close() (err error) {
	for view, slot := range s {
		err = errors.Join(err, slot.close())
		delete(s, view)
	}
	return err
}

// Open probes the machine and starts the slots. It returns a *LevelError if the machine gives less than cfg
// requires.
func Open(ctx context.Context, cfg Config) (*Pool, error) {
	var err error
	if cfg.Limits, err = cfg.Limits.filled(DefaultLimits()); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if cfg.Require == "" {
		cfg.Require = Namespaces
	}
	if !slices.Contains(Levels(), cfg.Require) {
		return nil, fmt.Errorf("sandbox: unknown required level %q; known: %v", cfg.Require, Levels())
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
	p.next.Store(cfg.First)
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

// newSeat starts Python's slot; with cold starts, each run starts its own.
func (p *Pool) newSeat() (seat, error) {
	if p.cfg.Cold {
		return seat{}, nil
	}
	s, err := newSlot(p.m, p.next.Add(1), nil)
	return seat{"": s}, err
}

// Level returns the isolation that programs get.
func (p *Pool) Level() Level { return p.m.level }

// Probes returns what was probed when the pool was opened.
func (p *Pool) Probes() []Probe { return p.probes }

// Slots returns how many programs run at once.
func (p *Pool) Slots() int { return p.cfg.Slots }

// InfraErrors counts how often a slot broke, including successful retries, and returns the last cause.
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

// Python returns the interpreter's version, such as "3.11.7".
func (p *Pool) Python() string { return p.m.python.Version }

// Interpreter returns the path of the interpreter's binary.
func (p *Pool) Interpreter() string { return p.m.python.Exe }

// CPUTime returns the CPU time of the pool's slots and the programs that ended in them. It waits for
// running programs.
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

// Close ends all slots. It waits for runs in progress; later runs fail.
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

// inSlot runs j in a slot of the seat, starting one if the seat has none and ending it if it broke. It closes
// our copies of the job's channel once the program has its own.
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

// sharesVisits reports whether several tests may share one visit. That takes Landlock, which closes their
// scratch directory, and extra processes.
func (p *Pool) sharesVisits() bool {
	return !p.apart && !p.cfg.Cold && p.m.landlock > 0 && p.m.level.AtLeast(Namespaces)
}

// execute runs j in a slot of the pool; if the slot breaks, once more in a fresh one.
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

// Check probes the machine and reports the result, whatever cfg requires.
func Check(ctx context.Context, cfg Config) (Level, []Probe, error) {
	m, probes, err := probe(ctx, cfg)
	if err != nil {
		return Unusable, probes, err
	}
	return m.level, probes, nil
}

// probe tests by doing: it starts a slot, runs a program, and has the filter kill another. Errors come
// from ctx only.
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
		add("landlock", nil, fmt.Sprintf("ABI %d, a second layer on top of the mounts", m.landlock), "")
	} else {
		// Not a failure of the level: the mounts do the same.
		list = append(list, Probe{Name: "landlock", OK: true, Text: "none; only the mounts hide files"})
	}
	if !found {
		return m, list, nil
	}
	if cfg.Most == Landlock {
		list = append(list, Probe{Name: "namespaces", Text: "off, as requested"})
		return alone(ctx, m, list)
	}
	m.level = Namespaces
	err = tried(ctx, m)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if !add("namespaces", err, "user, mount, pid, network, IPC and UTS namespaces, system-call filter",
		namespaceHelp()) {
		return alone(ctx, m, list)
	}
	if cfg.Most != "" && cfg.Most != Full {
		list = append(list, Probe{Name: "cgroup", Text: "off, as requested"})
		return m, list, nil
	}
	parents, err := usableParents()
	const help = "give the program its own group: systemd-run --user --scope -p Delegate=yes exp ..."
	if add("cgroup", err, "memory and processes are limited in "+fmt.Sprint(parents.dirs()), help) {
		m.level, m.parents = Full, parents
	}
	return m, list, nil
}

// alone probes whether level landlock is possible where namespaces are not. Its probe is second in the
// list.
func alone(ctx context.Context, m *machine, list []Probe) (*machine, []Probe, error) {
	p := &list[1]
	m.level = Unusable
	if m.landlock == 0 {
		*p = Probe{Name: "landlock", Text: "none, and without namespaces nothing else hides files",
			Help: "needs kernel 5.13 or newer booted with landlock in lsm="}
		return m, list, nil
	}
	m.level = Landlock
	removeStaleFolders()
	err := tried(ctx, m)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err != nil {
		m.level = Unusable
		*p = Probe{Name: "landlock", Text: err.Error(),
			Help: "programs run under their own user id: the interpreter and the temporary folder must be " +
				"accessible to every user; you can name an interpreter, such as /usr/bin/python3"}
		return m, list, nil
	}
	p.Text = fmt.Sprintf("ABI %d and a system-call filter, for Python programs of one process; not promised: %s",
		m.landlock, strings.Join(Landlock.Unpromised(), "; "))
	return m, list, nil
}

// ownsBlocks reports whether this process may give slots their own ids: it must be root, not stripped of
// power by a container.
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

// landlockABI returns the kernel's Landlock version, 0 for none.
func landlockABI() int {
	const version = 1 // LANDLOCK_CREATE_RULESET_VERSION
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, version)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// passed holds the trials that succeeded in this process.
var passed sync.Map

// tried is trial, once for an interpreter and a level if it succeeds: what the kernel granted this process it does not
// take back, and each slot starts or says why not.
func tried(ctx context.Context, m *machine) error {
	type conditions struct {
		interpreter file
		level       Level
		root        bool
	}
	at, found := fileAt(m.python.Exe)
	c := conditions{at, m.level, m.root}
	if _, ok := passed.Load(c); ok && found {
		return nil
	}
	err := trial(ctx, m)
	if err == nil && found {
		passed.Store(c, true)
	}
	return err
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

// namespaceHelp names the kernel setting that most likely forbids namespaces.
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
	return "in a container, the system-call profile may forbid unshare and mount (docker run --security-opt " +
		"seccomp=unconfined --security-opt systempaths=unconfined); needs Linux 5.12 or newer"
}
