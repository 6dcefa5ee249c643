//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// SelfTest runs all hostile programs, as many at once as the pool has slots, and an honest one after each.
// It calls report for each as it ends, from one goroutine at a time. It returns an error if afterwards the
// host has changed, a program has reached the network, or a process is left.
func (p *Pool) SelfTest(ctx context.Context, report func(Outcome)) error {
	list, err := attacks(hostileText)
	if err != nil {
		return err
	}
	return p.attemptAll(ctx, runnable(ctx, list), report)
}

// attemptAll is SelfTest for a list.
func (p *Pool) attemptAll(ctx context.Context, list []attack, report func(Outcome)) error {
	c, err := newCanaries()
	if err != nil {
		return err
	}
	defer c.close()
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		todo  = make(chan attack)
	)
	for range p.cfg.Slots {
		group.Go(func() {
			for a := range todo {
				o := p.attempt(ctx, a, c)
				mu.Lock()
				report(o)
				mu.Unlock()
			}
		})
	}
	for _, a := range list {
		if ctx.Err() == nil {
			todo <- a
		}
	}
	close(todo)
	group.Wait()
	return errors.Join(ctx.Err(), c.unharmed(), p.nothingLeft())
}

// runnable returns the attacks whose language this machine has.
func runnable(ctx context.Context, list []attack) []attack {
	missing := map[string]bool{}
	for _, t := range Toolchains(ctx) {
		missing[t.Name] = !t.OK
	}
	return slices.DeleteFunc(list, func(a attack) bool { return missing[a.language] })
}

// attempt runs one hostile program, then an honest one.
func (p *Pool) attempt(ctx context.Context, a attack, c *canaries) Outcome {
	r := Request{ID: a.name, Language: a.language, Source: c.prelude() + a.source, Limits: a.limits}
	if a.language != "" {
		r.Source = c.names().Replace(a.source)
	}
	if a.answer != "" {
		r.Tests = []Test{{Stdin: "6 7\n", Stdout: a.answer}}
	}
	o := a.at(p.Level()).judge(p.Run(ctx, r))
	honest := p.Run(ctx, Request{Source: "print(6 * 7)", Tests: []Test{{Stdout: "42\n"}}})
	if o.OK && honest.Verdict != OK {
		o.OK, o.Problem = false, fmt.Sprintf("an honest program after it: %s %s", honest.Verdict,
			honest.Runs[0].Detail)
	}
	return o
}

// nothingLeft checks every slot: only the interpreter and process 1 of its next run may
// live.
func (p *Pool) nothingLeft() error {
	var held []seat
	defer func() {
		for _, s := range held {
			p.idle <- s
		}
	}()
	var list []error
	for range p.cfg.Slots {
		at := <-p.idle
		held = append(held, at)
		for _, s := range at {
			if !s.isReady {
				if err := s.awaitReady(grace); err != nil {
					list = append(list, err)
					continue
				}
			}
			want := 1 // process 1 of the next run
			if p.m.level == Landlock {
				want = 0
			}
			if left := children(s.command.Process.Pid); len(left) != want {
				list = append(list, fmt.Errorf("processes left in a slot: %v", left))
			}
		}
	}
	return errors.Join(list...)
}

// canaries are things on the host that hostile programs try to reach.
type canaries struct {
	dir      string
	file     *os.File // programs try inherited descriptors: it is open without close-on-exec
	tcp      net.Listener
	udp      net.PacketConn
	unixAt   net.Listener
	abstract net.Listener

	mu     sync.Mutex
	called []string
}

func newCanaries() (c *canaries, err error) {
	c = &canaries{}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.dir, err = os.MkdirTemp("", "exp-canary-"); err != nil {
		return c, err
	}
	path := filepath.Join(c.dir, "canary")
	if err = os.WriteFile(path, []byte(canaryText), 0o666); err != nil {
		return c, err
	}
	if c.file, err = os.Open(path); err != nil {
		return c, err
	}
	if _, err = unix.FcntlInt(c.file.Fd(), unix.F_SETFD, 0); err != nil {
		return c, err
	}
	if c.tcp, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return c, err
	}
	if c.udp, err = net.ListenPacket("udp", "127.0.0.1:0"); err != nil {
		return c, err
	}
	if c.unixAt, err = net.Listen("unix", filepath.Join(c.dir, "socket")); err != nil {
		return c, err
	}
	if c.abstract, err = net.Listen("unix", "@"+filepath.Base(c.dir)); err != nil {
		return c, err
	}
	for _, l := range []net.Listener{c.tcp, c.unixAt, c.abstract} {
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_ = conn.Close()
				c.note(l.Addr().String())
			}
		}()
	}
	go func() {
		var buf [64]byte
		for {
			if _, _, err := c.udp.ReadFrom(buf[:]); err != nil {
				return
			}
			c.note(c.udp.LocalAddr().String())
		}
	}()
	return c, nil
}

func (c *canaries) note(who string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.called = append(c.called, who)
}

// unharmed reports what on the host was reached or changed.
func (c *canaries) unharmed() error {
	time.Sleep(20 * time.Millisecond) // let a call on its way arrive
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []error
	for _, who := range c.called {
		list = append(list, fmt.Errorf("a program reached %s", who))
	}
	if text, err := os.ReadFile(c.file.Name()); err != nil || string(text) != canaryText {
		list = append(list, fmt.Errorf("the canary file was changed: %w", err))
	}
	if entries, err := os.ReadDir(c.dir); err != nil || len(entries) != 2 {
		list = append(list, fmt.Errorf("the canary's folder was changed: %w", err))
	}
	return errors.Join(list...)
}

func (c *canaries) close() {
	for _, l := range []interface{ Close() error }{c.tcp, c.udp, c.unixAt, c.abstract} {
		if l != nil {
			_ = l.Close()
		}
	}
	if c.file != nil {
		_ = c.file.Close()
	}
	if c.dir != "" {
		_ = os.RemoveAll(c.dir)
	}
}

// names replaces @CANARY@, @PORT@ and @PID@ in programs of other languages.
func (c *canaries) names() *strings.Replacer {
	return strings.NewReplacer("@CANARY@", c.file.Name(), "@PORT@", portOf(c.tcp.Addr()), "@PID@",
		strconv.Itoa(os.Getpid()))
}

func portOf(a net.Addr) string {
	_, p, _ := net.SplitHostPort(a.String())
	return p
}

// prelude returns Python that tells a hostile program where the canaries are.
func (c *canaries) prelude() string {
	numbers, _ := json.Marshal(map[string]int{
		"ptrace": unix.SYS_PTRACE, "process_vm_readv": unix.SYS_PROCESS_VM_READV, "unshare": unix.SYS_UNSHARE,
		"clone":  unix.SYS_CLONE,
		"clone3": unix.SYS_CLONE3, "mount": unix.SYS_MOUNT, "setns": unix.SYS_SETNS, "keyctl": unix.SYS_KEYCTL,
		"bpf":            unix.SYS_BPF,
		"io_uring_setup": unix.SYS_IO_URING_SETUP, "userfaultfd": unix.SYS_USERFAULTFD,
		"open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT,
		"shmget":            unix.SYS_SHMGET,
	})
	return fmt.Sprintf(`def syscall(n, *a):
    import ctypes
    c = ctypes.CDLL(None, use_errno=True)
    c.syscall.restype = ctypes.c_long
    r = c.syscall(ctypes.c_long(n), *[ctypes.c_long(x) for x in a])
    return -ctypes.get_errno() if r == -1 else r
NR = %s
CANARY, SOCKET, ABSTRACT = %s, %s, %s
PORT, UDP, PID = %s, %s, %s
`, numbers, pythonString(c.file.Name()), pythonString(filepath.Join(c.dir, "socket")), pythonString(filepath.Base(c.dir)),
		portOf(c.tcp.Addr()), portOf(c.udp.LocalAddr()), strconv.Itoa(os.Getpid()))
}

// pythonString returns a literal of s: JSON's escapes are also Python's, and Go's encoder escapes U+2028
// and the like.
func pythonString(s string) string {
	quoted, _ := json.Marshal(s) // a string is always valid
	return string(quoted)
}
