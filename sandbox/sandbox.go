// Package sandbox runs programs that nobody trusts: a Request goes in, a Result
// comes out, and nothing the program did is left. It knows nothing of models or
// tasks.
//
// A Pool has slots, one per core. A slot is a private set of user, mount, pid,
// network, IPC and UTS namespaces in which a Python interpreter waits with the
// usual modules loaded (zygote.py). Per run it forks a program into a new pid
// namespace with a fresh scratch directory; the program gives up every right,
// installs the system-call filter and only then reads its source. DESIGN.md has
// the protocol and the reasons.
//
// Not covered: bugs of the kernel, side channels of the processor, and a root
// user who attacks his own machine. Where those matter, put a virtual machine
// around the whole harness.
package sandbox

import (
	"encoding/json"
	"fmt"
	"time"
)

// Request is a program to run. The zero value of a field asks for its default.
type Request struct {
	ID       string            `json:"id"`
	Language string            `json:"language"`  // "python" (default)
	Mode     string            `json:"mode"`      // "stdio" (default), "call" or "asserts"
	Source   string            `json:"source"`    // the program
	Args     []string          `json:"args"`      // after the program's name
	Files    map[string][]byte `json:"files"`     // by plain name, put into the scratch directory; base64 in JSON
	Stdin    string            `json:"stdin"`     // of a run without Tests
	Tests    []Test            `json:"tests"`     // one fresh run each
	Entry    string            `json:"entry"`     // call, asserts: a function, or a method of class Solution
	TestCode string            `json:"test_code"` // asserts: a trusted program that calls Entry
	// asserts: further names of the program that TestCode uses, such as classes
	Uses   []string `json:"uses"`
	RunAll bool     `json:"run_all"` // go on after a test that failed
	Limits Limits   `json:"limits"`

	// Judge decides about the run of a test in the place of what Test expects, from how
	// it ended and what it gave; nil compares with Test. It is called in order, once
	// more for a test that failed beside others and is run alone.
	Judge func(test int, r Run) (Verdict, string) `json:"-"`
}

// Test is one input with what it must give. Expected values never enter a process
// that runs the program.
type Test struct {
	Stdin  string `json:"stdin"`
	Stdout string `json:"stdout"` // stdio: compared as bytes, trailing white space of the whole apart

	Args   json.RawMessage `json:"args"`   // call: a JSON list
	Expect json.RawMessage `json:"expect"` // call: compared by value, 1 equals 1.0 and true
}

// Limits bound one run, summed over its processes. Zero asks for the default.
type Limits struct {
	WallMS       int64 `json:"wall_ms"`       // from release to end
	CPUMS        int64 `json:"cpu_ms"`        // user and system time
	MemoryMB     int64 `json:"memory_mb"`     // all processes, with scratch and shared memory under level full
	Processes    int64 `json:"processes"`     // with threads
	StdoutKB     int64 `json:"stdout_kb"`     //
	StderrKB     int64 `json:"stderr_kb"`     //
	FileMB       int64 `json:"file_mb"`       // each file
	ScratchMB    int64 `json:"scratch_mb"`    // the scratch directory
	ScratchFiles int64 `json:"scratch_files"` //
	OpenFiles    int64 `json:"open_files"`    //
}

// DefaultLimits are used where a request says nothing.
func DefaultLimits() Limits {
	return Limits{WallMS: 10_000, CPUMS: 5_000, MemoryMB: 512, Processes: 32, StdoutKB: 1024, StderrKB: 64,
		FileMB: 16, ScratchMB: 64, ScratchFiles: 4096, OpenFiles: 64}
}

// limit is one of Limits with its name in JSON and the most that may be asked.
type limit struct {
	name string
	of   func(*Limits) *int64
	most int64
}

// limitTable lists the limits in the order of the struct. The bounds keep products
// (MB to bytes, ms to ns) far inside 64 bits.
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

// NamedLimit is one of Limits by its name in JSON.
type NamedLimit struct {
	Name  string
	Value int64
}

// List has all limits, in the order of the struct.
func (l Limits) List() (list []NamedLimit) {
	for _, x := range limitTable() {
		list = append(list, NamedLimit{x.name, *x.of(&l)})
	}
	return list
}

// Set changes the limit that is called name in JSON.
func (l *Limits) Set(name string, value int64) error {
	var names []string
	for _, x := range limitTable() {
		if x.name == name {
			if value < 1 || value > x.most {
				return fmt.Errorf("limit %s = %d: must be from 1 to %d", name, value, x.most)
			}
			*x.of(l) = value
			return nil
		}
		names = append(names, x.name)
	}
	return fmt.Errorf("no limit %q: there are %v", name, names)
}

// filled is l with defaults from d for what is zero.
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

// The verdicts. What the harness measured wins over what the program shows.
const (
	OK                Verdict = "ok"                 // ended with status 0, and all tests passed
	WrongAnswer       Verdict = "wrong_answer"       // ended with status 0 and another output
	RuntimeError      Verdict = "runtime_error"      // another status, or a signal
	TimeLimit         Verdict = "time_limit"         // wall or CPU, see Run.Detail
	MemoryLimit       Verdict = "memory_limit"       //
	OutputLimit       Verdict = "output_limit"       // stdout, stderr or a file
	CompileError      Verdict = "compile_error"      // the source is no program
	SecurityViolation Verdict = "security_violation" // killed by the system-call filter
	InfraError        Verdict = "infra_error"        // the sandbox failed, not the program
)

// Level is how much isolation there is.
type Level string

// The levels, best first. Nothing is ever run with less than was asked for.
const (
	Full       Level = "full"       // namespaces, filter, and a cgroup for memory and processes
	Namespaces Level = "namespaces" // without the cgroup: a watchdog measures every 10 ms
	Landlock   Level = "landlock"   // no namespaces: Python programs of one process that write no file, see Unpromised
	Unusable   Level = "none"       // nothing is run
)

// rank orders levels; an unknown one is above all, so that it is never met.
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

// Levels are those at which programs are run, best first.
func Levels() []Level { return []Level{Full, Namespaces, Landlock} }

// Unpromised is what a level does not keep of what the best one does, a phrase each.
func (l Level) Unpromised() []string {
	if l != Landlock {
		return nil
	}
	return []string{
		"which paths exist can be seen by stat, and the machine's name, load and users' ids too",
		"capabilities that nothing of a program's can gain stay in its bounding set",
		"a program has threads but no other process, and can write no file",
		"languages other than Python are not run",
		"of an ordinary user, all processes count as the program's threads: started meanwhile, they take from " +
			"its bound",
	}
}

// AtLeast tells whether l gives all that least gives.
func (l Level) AtLeast(least Level) bool { return l.rank() >= least.rank() }

// Result is what came of a request.
type Result struct {
	ID        string  `json:"id"`
	Verdict   Verdict `json:"verdict"` // of the first run that is not ok
	Passed    int     `json:"passed"`
	Total     int     `json:"total"` // tests of the request
	Isolation Level   `json:"isolation"`
	Runs      []Run   `json:"runs"`
}

// Run is one execution of the program.
type Run struct {
	Status   Verdict
	ExitCode int    // modulo 256; -1 after a signal and where there was no exit
	Signal   string // "SIGSEGV"; empty if it exited
	Wall     time.Duration
	CPU      time.Duration // user and system time of all processes
	// peak; of the whole run under level full, else of the largest process or of the watchdog's
	// sums
	MemoryKB   int64
	Stdout     []byte // at most the cap
	Stderr     []byte
	Borderline bool   // CPU time within 10 % of its limit: rerun alone before believing it
	Detail     string // what was hit, or what broke

	StdoutBytes     int64 // received, which may be more than was kept
	StdoutTruncated bool

	Shared int // call: how many tests one visit ran; Wall, CPU and MemoryKB are the visit's, the times divided by it

	Value []byte // call: what the function returned, in JSON; empty: nothing

	result []byte // what a driver wrote
}

// Config is how a Pool is made. The zero value is one slot per core, the defaults
// of Limits, and at least level namespaces.
type Config struct {
	Slots   int    // programs at once; 0: one per core
	Require Level  // refuse to open below it; empty: Namespaces
	Most    Level  // use no more than it, to test a lower level; empty: the best there is
	Python  string // interpreter; empty: python3 of PATH
	Limits  Limits // where requests say nothing
	Cold    bool   // a new slot for every run, of one test each: slow, to compare results with
}

// LevelError is returned by Open where the machine cannot give what is required.
type LevelError struct {
	Required, Have Level
	Probes         []Probe // those that failed
}

func (e *LevelError) Error() string {
	s := fmt.Sprintf("sandbox: level %s is required, and this machine gives %s", e.Required, e.Have)
	for _, p := range e.Probes {
		s += fmt.Sprintf("; %s: %s", p.Name, p.Text)
	}
	return s
}

// Hint is what a person can do about it.
func (e *LevelError) Hint() string {
	for _, p := range e.Probes {
		if p.Help != "" {
			return p.Help
		}
	}
	return ""
}

// ExitCode is that of a sandbox that cannot be used.
func (e *LevelError) ExitCode() int { return 8 }

// Probe is one thing that isolation needs, tried by doing it.
type Probe struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text"` // what there is, or what failed
	Help string `json:"help,omitempty"`
}
