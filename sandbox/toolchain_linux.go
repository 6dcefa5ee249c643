//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// toolchain says how to build and run programs of a language, and which files of the host its slots see in
// addition to Python's. Compiled programs are static: they run in Python's slots and see no compiler.
type toolchain struct {
	Text     string     // "gcc 12.2.0, /usr/bin/gcc"
	commands [][]string // build or check the program; paths as inside
	output   string     // what the commands build; empty: nothing, the source is run
	run      []string   // runs the source; empty: the output is executed
	env      []string
	binds    []bind
}

// toolchainError says why a language cannot be used here.
type toolchainError struct {
	Language, Why, Help string
}

func (e *toolchainError) Error() string {
	return fmt.Sprintf("language %s: no toolchain: %s", e.Language, e.Why)
}

// Toolchains reports, for each language except Python, whether its programs can run, or why not. It only
// looks; a toolchain is tried when the first program needs it.
func Toolchains(ctx context.Context) (list []Probe) {
	for _, l := range languages() {
		p := Probe{Name: l.name}
		if t, err := findToolchain(ctx, l, false); err == nil {
			p.OK, p.Text = true, t.Text
		} else if missing := (*toolchainError)(nil); errors.As(err, &missing) {
			p.Text, p.Help = missing.Why, missing.Help
		} else {
			p.Text = err.Error()
		}
		list = append(list, p)
	}
	return list
}

// findToolchain asks the tools of a language to describe themselves. With prepare it also builds what they
// need, which may take long the first time.
func findToolchain(ctx context.Context, l language, prepare bool) (toolchain, error) {
	var t toolchain
	var err error
	help := ""
	switch l.name {
	case "c":
		t, err = findGCC(ctx, "gcc", "c", []string{"-O2", "-std=gnu17", "-static", "-o", "program", l.source, "-lm"},
			"cc1", "libc.a", "libm.a")
		help = "install gcc and the static C library (Debian: gcc libc6-dev; Fedora: gcc glibc-static)"
	case "cpp":
		t, err = findGCC(ctx, "g++", "c++", []string{"-O2", "-std=c++20", "-static", "-o", "program", l.source},
			"cc1plus", "libc.a", "libstdc++.a")
		help = "install g++ and the static C and C++ libraries (Debian: g++; Fedora: gcc-c++ glibc-static " +
			"libstdc++-static)"
	case "go":
		t, err = findGo(ctx, l.source, prepare)
		help = "install Go 1.20 or newer (go.dev/dl)"
	case "javascript":
		t, err = findNode(ctx, l.source)
		help = "install Node 16 or newer"
	}
	if err != nil {
		if ctx.Err() != nil {
			return t, ctx.Err()
		}
		return t, &toolchainError{l.name, err.Error(), help}
	}
	t.env = append(t.env, "HOME=/box", "TMPDIR=/box", "LANG=C.UTF-8", "TZ=UTC")
	t.binds = outermost(t.binds)
	return t, nil
}

// ask runs a tool of the host and returns what it prints.
func ask(ctx context.Context, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute) // for the library on a loaded machine
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(append(os.Environ(), "LC_ALL=C"), env...)
	cmd.Dir = "/" // not affected by any folder's go.mod, .npmrc or specs
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, lastLine(stderr.Bytes()))
	}
	return stdout.String(), nil
}

// folderOf binds the folder of a file.
func folderOf(file string) (bind, error) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(file))
	return bind{Source: dir, Target: dir}, err
}

// executable binds a program at its name and at the target of links, and the folders of the libraries that
// it maps.
func executable(ctx context.Context, name string) ([]bind, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("%s is not installed", name)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	exe, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	loader, err := loaderOf(exe)
	if err != nil {
		return nil, fmt.Errorf("%s is not a program, perhaps a script: %w", exe, err)
	}
	list := []bind{{Source: exe, Target: exe}, {Source: exe, Target: path}}
	if loader == "" {
		return list, nil
	}
	listed, err := ask(ctx, nil, loader, "--list", exe)
	if err != nil {
		return nil, err
	}
	for _, word := range append(strings.Fields(listed), loader) {
		if !strings.HasPrefix(word, "/") {
			continue
		}
		if file, err := filepath.EvalSymlinks(word); err == nil {
			word = file
		}
		b, err := folderOf(word)
		if err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return list, nil
}

// outermost drops the binds that another bind already shows.
func outermost(list []bind) (out []bind) {
	slices.SortFunc(list, func(x, y bind) int { return strings.Compare(x.Target, y.Target) })
	for _, b := range list {
		if !slices.ContainsFunc(out, func(o bind) bool { return o.shows(b) }) {
			out = append(out, b)
		}
	}
	return out
}

// shows reports whether o already makes b visible.
func (o bind) shows(b bind) bool {
	if o.Target == b.Target {
		return true
	}
	target, below := strings.CutPrefix(b.Target, strings.TrimSuffix(o.Target, "/")+"/")
	if !below {
		return false
	}
	if filepath.Join(o.Source, target) == b.Source {
		return true
	}
	// A symbolic link: its target has its own bind.
	at, err := filepath.EvalSymlinks(filepath.Join(o.Source, target))
	return err == nil && at == b.Source
}

// findGCC describes the GNU compiler: the driver, its parts, and the headers and libraries that it
// searches.
func findGCC(ctx context.Context, driver, dialect string, args []string, compiler string,
	libraries ...string) (t toolchain, err error) {
	if t.binds, err = executable(ctx, driver); err != nil {
		return t, err
	}
	exe := t.binds[0].Source
	version, err := ask(ctx, nil, exe, "-dumpfullversion", "-dumpversion")
	if err != nil {
		return t, err
	}
	t.Text = fmt.Sprintf("%s %s, %s", driver, strings.TrimSpace(version), exe)
	path := []string{filepath.Dir(exe)}
	for _, part := range []string{compiler, "collect2", "as", "ld"} {
		name, err := ask(ctx, nil, exe, "-print-prog-name="+part)
		if err != nil {
			return t, err
		}
		binds, err := executable(ctx, strings.TrimSpace(name))
		if err != nil {
			return t, err
		}
		t.binds = append(t.binds, binds...)
		path = append(path, filepath.Dir(binds[1].Target))
	}
	files := append(libraries, "libgcc.a", "crt1.o")
	for _, file := range files {
		name, err := ask(ctx, nil, exe, "-print-file-name="+file)
		if err != nil {
			return t, err
		}
		name = strings.TrimSpace(name)
		if !filepath.IsAbs(name) {
			return t, fmt.Errorf("%s does not find %s", driver, file)
		}
		b, err := folderOf(name)
		if err != nil {
			return t, err
		}
		t.binds = append(t.binds, b)
	}
	headers, err := headerFolders(ctx, exe, dialect)
	if err != nil {
		return t, err
	}
	for _, dir := range headers {
		t.binds = append(t.binds, bind{Source: dir, Target: dir})
	}
	slices.Sort(path)
	t.env = []string{"PATH=" + strings.Join(slices.Compact(path), ":")}
	t.commands, t.output = [][]string{append([]string{exe}, args...)}, "program"
	return t, nil
}

// headerFolders returns the folders that #include <...> searches.
func headerFolders(ctx context.Context, exe, dialect string) (list []string, err error) {
	cmd := exec.CommandContext(ctx, exe, "-E", "-v", "-x", dialect, "/dev/null")
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	text, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s -E -v: %w", exe, err)
	}
	_, rest, _ := strings.Cut(string(text), "#include <...> search starts here:\n")
	rest, _, ok := strings.Cut(rest, "End of search list.")
	if !ok {
		return nil, fmt.Errorf("%s does not say where its headers are", exe)
	}
	for line := range strings.Lines(rest) {
		dir, err := filepath.EvalSymlinks(strings.TrimSpace(line))
		if err != nil {
			return nil, err
		}
		list = append(list, dir)
	}
	return list, nil
}

// findNode describes Node, which checks the syntax of the source, then runs it.
func findNode(ctx context.Context, source string) (t toolchain, err error) {
	if t.binds, err = executable(ctx, "node"); err != nil {
		return t, err
	}
	exe := t.binds[0].Source
	version, err := ask(ctx, nil, exe, "--version")
	if err != nil {
		return t, err
	}
	t.Text = fmt.Sprintf("Node %s, %s", strings.TrimPrefix(strings.TrimSpace(version), "v"), exe)
	t.commands = [][]string{{exe, "--check", source}}
	const stackKB = 32 << 10 // of the program's 64 MB
	t.run = []string{exe, fmt.Sprintf("--stack-size=%d", stackKB), "/box/" + source}
	t.env = []string{"PATH=" + filepath.Dir(exe)}
	return t, nil
}

// goEnv keeps the user's settings out of builds. The flags are the Makefile's, so that after `make build` most of the
// standard library lies compiled in Go's cache. Programs are linked without debugging information anyway.
func goEnv() []string {
	return []string{"GOFLAGS=-trimpath -gcflags=all=-dwarf=false", "GOENV=off", "GOWORK=off", "GO111MODULE=on",
		"GOTOOLCHAIN=local", "CGO_ENABLED=0", "GOEXPERIMENT=",
		"GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH}
}

// goInside is the path of the compiled standard library in a slot.
const goInside = "/gostd"

// findGo describes Go: only its compiler and linker, and the standard library in their format. The go
// command, its module cache and its network access stay outside.
func findGo(ctx context.Context, source string, prepare bool) (t toolchain, err error) {
	command, err := exec.LookPath("go")
	if err != nil {
		return t, errors.New("go is not installed")
	}
	text, err := ask(ctx, goEnv(), command, "env", "-json", "GOROOT", "GOVERSION", "GOTOOLDIR")
	if err != nil {
		return t, err
	}
	var env struct{ GOROOT, GOVERSION, GOTOOLDIR string }
	if err := json.Unmarshal([]byte(text), &env); err != nil {
		return t, err
	}
	t.Text = fmt.Sprintf("%s, %s", strings.Replace(env.GOVERSION, "go", "Go ", 1), env.GOROOT)
	var tools []string
	for _, name := range []string{"compile", "link"} {
		binds, err := executable(ctx, filepath.Join(env.GOTOOLDIR, name))
		if err != nil {
			return t, err
		}
		t.binds = append(t.binds, binds...)
		tools = append(tools, binds[0].Source)
	}
	if prepare {
		dir, err := goLibrary(ctx, command, env.GOVERSION+" "+env.GOROOT)
		if err != nil {
			return t, err
		}
		t.binds = append(t.binds, bind{Source: dir, Target: goInside})
	}
	const config = goInside + "/importcfg"
	t.commands = [][]string{
		{tools[0], "-p", "main", "-complete", "-trimpath", "/box=>", "-importcfg", config, "-o", "main.a", source},
		{tools[1], "-importcfg", config, "-buildmode=exe", "-s", "-w", "-o", "program", "main.a"},
	}
	t.output = "program"
	return t, nil
}

// goPackages lists the packages of the standard library that programs may import, with dependencies. Web
// servers, cryptographic protocols and Go's own tools would double the compile time.
func goPackages() []string {
	return strings.Fields(`archive/... bufio bytes cmp compress/... container/... context crypto/md5 crypto/rand crypto/sha1 crypto/sha256 crypto/sha512
		embed encoding/... errors fmt hash/... html image/... index/... io/... iter log maps math/... net net/url os/... path/... reflect regexp/...
		runtime runtime/debug slices sort strconv strings sync/... syscall text/... time unicode/... unique unsafe`)
}

// goLibrary returns a folder with the compiled standard library and importcfg, the list that compiler and
// linker read. It is built once per version of Go and kept in the user's cache: compiling takes half a minute of
// processor time where Go's cache has none of it.
func goLibrary(ctx context.Context, command, version string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("nowhere to keep the compiled library: %w", err)
	}
	sum := sha256.Sum256([]byte(version + runtime.GOOS + runtime.GOARCH + fmt.Sprint(goPackages())))
	parent := filepath.Join(cache, "exp")
	dir := filepath.Join(parent, "go-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(filepath.Join(dir, "importcfg")); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	making, err := os.MkdirTemp(parent, "making-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(making)
	if err := os.Chmod(making, 0o755); err != nil { // the slot's ids read it
		return "", err
	}
	list, err := ask(ctx, goEnv(), command,
		append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}"}, goPackages()...)...)
	if err != nil {
		return "", err
	}
	var config strings.Builder
	n := 0
	for line := range strings.Lines(list) {
		name, archive, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || archive == "" {
			continue // unsafe
		}
		file := fmt.Sprintf("%d.a", n)
		n++
		if err := copyFile(archive, filepath.Join(making, file)); err != nil {
			return "", err
		}
		fmt.Fprintf(&config, "packagefile %s=%s/%s\n", name, goInside, file)
	}
	if err := os.WriteFile(filepath.Join(making, "importcfg"), []byte(config.String()), 0o644); err != nil {
		return "", err
	}
	if err := os.Rename(making, dir); err != nil {
		if _, made := os.Stat(filepath.Join(dir, "importcfg")); made != nil { // nor by another process
			return "", err
		}
	}
	return dir, nil
}

// copyFile hard-links the file if it can: the compiler's cache never changes one.
func copyFile(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
