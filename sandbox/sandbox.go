// Package sandbox runs untrusted programs: a Request goes in, a Result comes out, and nothing of the
// program remains. It knows nothing about models or tasks.
//
// A Pool has slots, one per core. A slot is a private set of user, mount, pid, network, IPC and UTS
// namespaces where a Python interpreter, the zygote (zygote.py), waits with the usual modules loaded.
// For each run it forks a process into a new pid namespace with a fresh scratch directory. That process
// gives up every right, installs the system-call filter and only then reads its source. DESIGN.md has the
// protocol and the reasons.
//
// Not covered: kernel bugs, processor side channels, and a root user who attacks his own machine. If those
// matter, run the whole harness in a virtual machine.
package sandbox

import (
	"encoding/json"
	"fmt"
	"time"
)

// Request is a program to run. A zero field means its default.
type Request struct {
	ID       string            `json:"id"`
	Language string            `json:"language"`  // "python" (default)
	Mode     string            `json:"mode"`      // "stdio" (default), "call" or "asserts"
	Source   string            `json:"source"`    // the program
	Args     []string          `json:"args"`      // after the program's name
	Files    map[string][]byte `json:"files"`     // by plain name, placed in the scratch directory; base64 in JSON
	Stdin    string            `json:"stdin"`     // for a run without Tests
	Tests    []Test            `json:"tests"`     // one fresh run each
	Entry    string            `json:"entry"`     // call, asserts: a function, or a method of class Solution
	TestCode string            `json:"test_code"` // asserts: a trusted program that calls Entry
	// asserts: further names of the program that TestCode uses, such as classes
	Uses   []string `json:"uses"`
	RunAll bool     `json:"run_all"` // continue after a failed test
	// Echo prints the value of the expression that ends a Python program in mode stdio, as an interactive session
	// does; None prints nothing.
	Echo bool `json:"echo"`
	// Seed is what module random of a Python program in mode stdio begins with; 0: other numbers every time.
	Seed   int64  `json:"seed"`
	Limits Limits `json:"limits"`

	// Judge judges the run of a test, from how it ended and its output, instead of comparing with Test; nil
	// compares with Test. It is called in order, and again for a test that failed in a shared visit and is
	// rerun alone.
	Judge func(test int, r Run) (Verdict, string) `json:"-"`
}

// Test is one input with its expected result. Expected values never enter a process that runs the program.
type Test struct {
	Stdin  string `json:"stdin"`
	Stdout string `json:"stdout"` // stdio: compared as bytes, except for white space at the very end

	Args   json.RawMessage `json:"args"`   // call: a JSON list
	Expect json.RawMessage `json:"expect"` // call: compared by value, 1 equals 1.0 and true
}

// Limits bound one run, summed over its processes. Zero means the default.
type Limits struct {
	WallMS       int64 `json:"wall_ms"`       // from release to end
	CPUMS        int64 `json:"cpu_ms"`        // user and system time
	MemoryMB     int64 `json:"memory_mb"`     // all processes, with scratch and shared memory under level full
	Processes    int64 `json:"processes"`     // including threads
	StdoutKB     int64 `json:"stdout_kb"`     //
	StderrKB     int64 `json:"stderr_kb"`     //
	FileMB       int64 `json:"file_mb"`       // each file
	ScratchMB    int64 `json:"scratch_mb"`    // the scratch directory
	ScratchFiles int64 `json:"scratch_files"` //
	OpenFiles    int64 `json:"open_files"`    //
}

// DefaultLimits apply where a request sets none.
func DefaultLimits() Limits {
	return Limits{WallMS: 10_000, CPUMS: 5_000, MemoryMB: 512, Processes: 32, StdoutKB: 1024, StderrKB: 64,
		FileMB: 16, ScratchMB: 64, ScratchFiles: 4096, OpenFiles: 64}
}

// limit is a field of Limits with its JSON name and its maximum.
type limit struct {
	name string
	of   func(*Limits) *int64
	most int64
}

// limitTable lists the limits in struct order. The bounds keep products (MB to bytes, ms to ns) far below
// 64 bits.
func limitTable() []limit {
	const day = 24 * 3600 * 1000
	return []limit{
		{"wall_ms", func(l *Limits) *int64 { return &l.WallMS }, day},
		{"cpu_ms", func(l *Limits) *int64 { return &l.CPUMS }, day},
		{"memory_mb", func(l *Limits) *int64 { return &l.MemoryMB }, 1 << 20},
		{"processes", func(l *Limits) *int64 { return &l.Processes }, 4096},
		{"stdout_kb", func(l *Limits) *int64 { return &l.StdoutKB }, 1 << 20},
		{"stderr_kb", func(l *Limits) *int64 { return &l.StderrKB }, 1 << 20},
		{"file_mb", func(l *Limits) *int64 { return &l.FileMB }, 1 << 20},
		{"scratch_mb", func(l *Limits) *int64 { return &l.ScratchMB }, 1 << 20},
		{"scratch_files", func(l *Limits) *int64 { return &l.ScratchFiles }, 1 << 24},
		{"open_files", func(l *Limits) *int64 { return &l.OpenFiles }, 1024},
	}
}

// NamedLimit is one of Limits with its JSON name.
type NamedLimit struct {
	Name  string
	Value int64
}

// List returns all limits in struct order.
func (l Limits) List() (list []NamedLimit) {
	for _, x := range limitTable() {
		list = append(list, NamedLimit{x.name, *x.of(&l)})
	}
	return list
}

// Set changes the limit with this JSON name.
func (l *Limits) Set(name string, value int64) error {
	var names []string
	for _, x := range limitTable() {
		if x.name == name {
			if value < 1 || value > x.most {
				return fmt.Errorf("limit %s = %d: must be between 1 and %d", name, value, x.most)
			}
			*x.of(l) = value
			return nil
		}
		names = append(names, x.name)
	}
	return fmt.Errorf("unknown limit %q; known: %v", name, names)
}

// filled returns l with zero fields replaced by d's.
func (l Limits) filled(d Limits) (Limits, error) {
	for _, x := range limitTable() {
		v := *x.of(&l)
		if v == 0 {
			v = *x.of(&d)
		}
		if err := l.Set(x.name, v); err != nil {
			return l, err
		}
	}
	return l, nil
}

// Verdict says how a run or a request ended.
type Verdict string

// The verdicts. What the harness measured beats what the program shows.
const (
	OK                Verdict = "ok"                 // ended with status 0, and all tests passed
	WrongAnswer       Verdict = "wrong_answer"       // ended with status 0 and wrong output
	RuntimeError      Verdict = "runtime_error"      // another status, or a signal
	TimeLimit         Verdict = "time_limit"         // wall or CPU, see Run.Detail
	MemoryLimit       Verdict = "memory_limit"       //
	OutputLimit       Verdict = "output_limit"       // stdout, stderr or a file
	CompileError      Verdict = "compile_error"      // the source does not compile
	SecurityViolation Verdict = "security_violation" // killed by the system-call filter
	InfraError        Verdict = "infra_error"        // the sandbox failed, not the program
)

// Level is a degree of isolation.
type Level string

// The levels, best first. Nothing ever runs with less than requested.
const (
	Full       Level = "full"       // namespaces, filter, and a cgroup for memory and processes
	Namespaces Level = "namespaces" // no cgroup: a watchdog measures every 10 ms
	Landlock   Level = "landlock"   // no namespaces: single-process Python programs that write no file, see Unpromised
	Unusable   Level = "none"       // nothing runs
)

// rank orders levels; an unknown one ranks highest, out of reach.
func (l Level) rank() int {
	switch l {
	case Unusable:
		return 0
	case Landlock:
		return 1
	case Namespaces:
		return 2
	case Full:
		return 3
	}
	return 4
}

// Levels lists the levels of isolation, best first.
func Levels() []Level { return []Level{Full, Namespaces, Landlock} }

// Unpromised lists what a level lacks compared to the best one, a phrase each.
func (l Level) Unpromised() []string {
	if l != Landlock {
		return nil
	}
	return []string{
		"stat shows which paths exist; the machine's name, load and user ids are visible too",
		"capabilities that a program cannot gain stay in its bounding set",
		"a program can start threads but no other process, and cannot write files",
		"only Python programs run",
		"for an ordinary user, all processes of the user count as the program's threads and take from " +
			"its limit",
	}
}

// AtLeast reports whether l gives all that least gives.
func (l Level) AtLeast(least Level) bool { return l.rank() >= least.rank() }

// Result is the outcome of a request.
type Result struct {
	ID        string  `json:"id"`
	Verdict   Verdict `json:"verdict"` // of the first run that is not ok
	Passed    int     `json:"passed"`
	Total     int     `json:"total"` // tests in the request
	Isolation Level   `json:"isolation"`
	Runs      []Run   `json:"runs"`
}

// Run is one execution of the program.
type Run struct {
	Status   Verdict
	ExitCode int    // modulo 256; -1 after a signal or without an exit
	Signal   string // "SIGSEGV"; empty if it exited
	Wall     time.Duration
	CPU      time.Duration // user and system time of all processes
	// Peak memory: of the whole run under level full, else of the largest process or the watchdog's sums.
	MemoryKB   int64
	Stdout     []byte // at most the cap
	Stderr     []byte
	Borderline bool   // CPU time within 10 % of its limit: rerun alone before trusting it
	Detail     string // what was hit, or what broke

	StdoutBytes     int64 // received; may exceed what was kept
	StdoutTruncated bool

	Shared int // call: number of tests in one visit; Wall, CPU and MemoryKB are the visit's, the times divided by it

	Value []byte // call: the function's return value in JSON; empty: none

	result []byte // a driver's output
}

// Config configures a Pool. The zero value means one slot per core, the default Limits, and at least level
// namespaces.
type Config struct {
	Slots   int    // programs at once; 0: one per core
	Require Level  // refuse to open below it; empty: Namespaces
	Most    Level  // use at most this level, to test a lower one; empty: the best available
	Python  string // interpreter; empty: python3 in PATH
	Limits  Limits // where requests set none
	Cold    bool   // a new slot for every run, of one test each: slow, for comparing results
	// First is added to the numbers of slots, which name what they own and choose their cores. Pools that a process,
	// or that ranks on a machine, have at the same time need different numbers.
	First uint64
	// CompileMS is the processor time of a compiler, whatever a request's limits; 0: 10 s.
	CompileMS int64
}

// LevelError is returned by Open if the machine cannot give the required level.
type LevelError struct {
	Required, Have Level
	Probes         []Probe // the failed ones
}

func (e *LevelError) Error() string {
	s := fmt.Sprintf("sandbox: level %s is required, but this machine gives %s", e.Required, e.Have)
	for _, p := range e.Probes {
		s += fmt.Sprintf("; %s: %s", p.Name, p.Text)
	}
	return s
}

// Hint tells the user what to do.
func (e *LevelError) Hint() string {
	for _, p := range e.Probes {
		if p.Help != "" {
			return p.Help
		}
	}
	return ""
}

// ExitCode is the exit code for an unusable sandbox.
func (e *LevelError) ExitCode() int { return 8 }

// Probe is one requirement of isolation, tested by doing it.
type Probe struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text"` // what was found, or what failed
	Help string `json:"help,omitempty"`
}
