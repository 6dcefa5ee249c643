//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// builds holds the programs a pool has compiled, by the digest of their source.
type builds struct {
	mu    sync.Mutex
	known map[[32]byte]*build
	order []*build // oldest first
	bytes int

	tools map[string]*tool // by language
}

// Limits of builds; a batch has many samples of few problems.
const mostBuilds, mostBuildBytes = 256, 128 << 20

// build is a program that is, or is being, compiled.
type build struct {
	key    [32]byte
	done   chan struct{} // closed when the other fields are set
	binary []byte
	failed *Run // the compiler's run, if it rejected the source
	err    error
}

// tool is a toolchain, looked for once.
type tool struct {
	mu    sync.Mutex // held while looking
	found bool
	toolchain
	err error
}

// tool finds the toolchain of a language; a missing one is an error.
func (p *Pool) tool(ctx context.Context, l language) (*tool, error) {
	p.builds.mu.Lock()
	t := p.builds.tools[l.name]
	if t == nil {
		t = &tool{}
		p.builds.tools[l.name] = t
	}
	p.builds.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.found {
		t.toolchain, t.err = findToolchain(ctx, l, true)
		t.found = ctx.Err() == nil // else the next caller looks
	}
	return t, t.err
}

// made is an executable program.
type made struct {
	executable []byte            // empty: Argv[0] is a file of the slot
	argv       []string          // put before the request's
	env        []string          //
	files      map[string][]byte // added to the request's
	view       string            // the slots that can run it
	failed     *Run              // the compiler's run if it made no program
}

// make compiles a program, or returns it if this pool has already compiled it.
func (p *Pool) make(ctx context.Context, r Request) (made, error) {
	l, _ := languageNamed(r.Language)
	if p.m.level == Landlock {
		return made{}, fmt.Errorf("language %s needs level %s: level %s runs only Python", l.name,
			Namespaces, Landlock)
	}
	t, err := p.tool(ctx, l)
	if err != nil {
		return made{}, err
	}
	b, err := p.build(ctx, l, t, r.Source)
	if err != nil {
		return made{}, err
	}
	m := made{failed: b.failed, executable: b.binary, argv: t.run, env: t.env}
	if len(t.run) > 0 {
		m.view, m.files = l.name, map[string][]byte{l.source: []byte(r.Source)}
	} else {
		m.argv, m.env = []string{"/box/" + t.output}, []string{"PATH=/box", "HOME=/box", "TMPDIR=/box",
			"LANG=C.UTF-8", "TZ=UTC"}
	}
	return m, nil
}

// build waits for the compiled source; the first to ask compiles it.
func (p *Pool) build(ctx context.Context, l language, t *tool, source string) (*build, error) {
	key := sha256.Sum256([]byte(l.name + "\x00" + source))
	for {
		p.builds.mu.Lock()
		b := p.builds.known[key]
		if b == nil {
			b = &build{key: key, done: make(chan struct{})}
			p.builds.known[key] = b
			p.builds.mu.Unlock()
			b.binary, b.failed, b.err = p.compile(ctx, l, t, source)
			p.builds.keep(b)
			close(b.done)
			return b, b.err
		}
		p.builds.mu.Unlock()
		select {
		case <-b.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if b.err == nil {
			return b, nil
		}
		if !errors.Is(b.err, context.Canceled) && !errors.Is(b.err, context.DeadlineExceeded) {
			return nil, b.err
		}
		// The goroutine that compiled was cancelled, and this one was not.
	}
}

// keep files a successful build and drops the oldest if there are too many.
func (s *builds) keep(b *build) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.err != nil {
		delete(s.known, b.key)
		return
	}
	s.order, s.bytes = append(s.order, b), s.bytes+len(b.binary)
	for len(s.order) > mostBuilds || s.bytes > mostBuildBytes && len(s.order) > 1 {
		old := s.order[0]
		s.order, s.bytes = s.order[1:], s.bytes-len(old.binary)
		delete(s.known, old.key)
	}
}

// compile runs the compiler like any program, in a slot that sees the toolchain. Every failure except the
// sandbox's own is blamed on the source: a compiler made to run forever is a compile error too.
func (p *Pool) compile(ctx context.Context, l language, t *tool, source string) ([]byte, *Run, error) {
	spec, err := json.Marshal(map[string]any{"commands": t.commands, "output": t.output, "env": environ(t.env)})
	if err != nil {
		return nil, nil, err
	}
	r, err := p.execute(ctx, job{files: map[string][]byte{l.source: []byte(source)}, driver: "compile",
		names:  map[string]string{"SPEC": string(spec)},
		limits: compileLimits(p.cfg.CompileMS), view: l.name})
	if err != nil {
		return nil, nil, err
	}
	binary := r.result
	r.result = nil
	switch {
	case r.Status == OK && (t.output == "") == (len(binary) == 0):
		return binary, nil, nil
	case r.Status == RuntimeError || r.Status == OK:
		r.Detail = "the compiler: " + firstError(r.Stderr)
	default:
		r.Detail = fmt.Sprintf("the compiler: %s (%s)", r.Status, r.Detail)
	}
	r.Status, r.Borderline = CompileError, false
	return nil, &r, nil
}

// sealed returns a memory file that holds a program and can never change.
func sealed(program []byte) (int, error) {
	fd, err := memoryFile(program)
	if err != nil {
		return -1, err
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("seal a program: %w", err)
	}
	return fd, nil
}
