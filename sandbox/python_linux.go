//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// python is an interpreter on the host, with the parts of it that a slot must see.
type python struct {
	Exe      string // the real binary, not a shim
	Version  string // "3.11.7"
	Stdlib   string
	Mapped   []string // shared libraries mapped by the preloaded modules
	insideAs string   // path inside the root
}

// preloaded lists the modules that ordinary solutions import; importing one of them costs a program
// nothing.
func preloaded() []string {
	return strings.Fields(`collections heapq bisect math cmath re itertools functools typing json random string decimal fractions operator
		copy datetime time statistics dataclasses enum abc io os sys array queue contextlib textwrap hashlib numbers types inspect
		warnings weakref traceback tempfile threading struct binascii calendar pprint unicodedata locale ast`)
}

// describePython makes the interpreter describe itself. Importing the modules to preload shows which
// libraries they map.
const describePython = `
import sys, os, json, sysconfig
for m in sys.argv[1:]:
    try: __import__(m)
    except ImportError: pass
import ctypes, socket, select, resource
maps = sorted({l.split(None, 5)[5].strip() for l in open("/proc/self/maps") if "/" in l})
print(json.dumps({"Exe": os.path.realpath(sys.executable), "Version": "%d.%d.%d" % sys.version_info[:3],
  "Stdlib": os.path.realpath(sysconfig.get_path("stdlib")), "Mapped": [m for m in maps if ".so" in os.path.basename(m)]}))
`

// findPython asks name, or python3 in PATH, to describe itself, once per process: a shim, such as pyenv's, takes
// longer to find the interpreter than the interpreter takes to answer.
func findPython(ctx context.Context, name string) (python, error) {
	if name == "" {
		name = "python3"
	}
	at, found := commandAt(name)
	if p, ok := described.Load(at); ok && found {
		return p.(python), nil
	}
	p, err := describe(ctx, name)
	if err == nil && found {
		described.Store(at, p)
	}
	return p, err
}

// described holds what interpreters said of themselves, by command.
var described sync.Map

// command is a command's file, and whatever a shim may choose an interpreter by.
type command struct {
	file
	folder, environment string
}

// file identifies a file's content.
type file struct {
	path         string
	device, node uint64
	size, change int64 // bytes; ns since 1970
}

// fileAt identifies a file; ok is false if it cannot be read.
func fileAt(path string) (f file, ok bool) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return f, false
	}
	return file{path: path, device: uint64(st.Dev), node: st.Ino, size: st.Size, change: st.Ctim.Nano()}, true
}

// commandAt identifies a command in PATH or at a path; ok is false if it is missing.
func commandAt(name string) (c command, ok bool) {
	path, err := exec.LookPath(name)
	if err != nil {
		return c, false
	}
	if c.file, ok = fileAt(path); !ok {
		return c, false
	}
	c.folder, err = os.Getwd()
	c.environment = strings.Join(os.Environ(), "\x00")
	return c, err == nil
}

// describe asks an interpreter to describe itself.
func describe(ctx context.Context, name string) (python, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // may take many seconds on a loaded machine
	defer cancel()
	cmd := exec.CommandContext(ctx, name, append([]string{"-I", "-S", "-c", describePython}, preloaded()...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return python{}, fmt.Errorf("interpreter %s: %w: %s", name, err, lastLine(stderr.Bytes()))
	}
	var p python
	if err := json.Unmarshal(out, &p); err != nil {
		return python{}, fmt.Errorf("interpreter %s: cannot read its description: %w", name, err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(p.Version, "%d.%d", &major, &minor); err != nil || major != 3 || minor < 9 {
		return python{}, fmt.Errorf("interpreter %s is Python %s: need 3.9 or newer", p.Exe, p.Version)
	}
	p.insideAs = fmt.Sprintf("/python/bin/python%d.%d", major, minor)
	return p, nil
}

// PythonVersion returns the version of the interpreter that runs programs, python3 in PATH.
func PythonVersion(ctx context.Context) (string, error) {
	p, err := findPython(ctx, "")
	return p.Version, err
}

// view returns the content of a slot's root: the interpreter under /python, wherever it is on the host; the
// folders of the libraries it maps; and five devices.
func (p python) view() (binds []bind, links map[string]string, err error) {
	var version [2]string
	copy(version[:], strings.Split(p.Version, "."))
	lib := "/python/lib/python" + version[0] + "." + version[1]
	binds = []bind{{Source: p.Exe, Target: p.insideAs}, {Source: p.Stdlib, Target: lib}}
	links = map[string]string{
		"/tmp": "/box", "/dev/shm": "/box", "/dev/fd": "/proc/self/fd",
		"/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2",
	}
	for _, top := range []string{"/lib", "/lib64", "/lib32"} {
		if to, err := os.Readlink(top); err == nil {
			links[top] = to
		}
	}
	var folders []string
	add := func(dir string) {
		if dir, err := filepath.EvalSymlinks(dir); err == nil && !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	}
	loader, err := loaderOf(p.Exe)
	if err != nil {
		return nil, nil, err
	}
	if loader != "" {
		add(filepath.Dir(loader))
	}
	prefix := filepath.Dir(filepath.Dir(p.Exe))
	for _, file := range p.Mapped {
		switch dir := filepath.Dir(file); {
		case strings.HasPrefix(file, p.Stdlib+"/"):
		case prefix != "/" && prefix != "/usr" && strings.HasPrefix(dir, prefix+"/"):
			// found by LD_LIBRARY_PATH
			binds = append(binds, bind{Source: file, Target: "/python/lib/" + filepath.Base(file)})
		default:
			add(dir)
		}
	}
	slices.Sort(folders) // a folder comes before its content
	for _, dir := range folders {
		binds = append(binds, bind{Source: dir, Target: dir})
	}
	for _, path := range []string{"/etc/ld.so.cache", "/usr/lib/locale/C.utf8"} { // the locale in LANG
		if _, err := os.Stat(path); err == nil {
			binds = append(binds, bind{Source: path, Target: path})
		}
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		binds = append(binds, bind{Source: "/dev/" + name, Target: "/dev/" + name, Device: true})
	}
	return binds, links, nil
}

// loaderOf returns the dynamic loader of an executable, "" for a static one.
func loaderOf(exe string) (string, error) {
	f, err := elf.Open(exe)
	if err != nil {
		return "", fmt.Errorf("interpreter %s: %w", exe, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name := make([]byte, p.Filesz)
			if _, err := p.ReadAt(name, 0); err != nil {
				return "", fmt.Errorf("interpreter %s: %w", exe, err)
			}
			return strings.TrimRight(string(name), "\x00"), nil
		}
	}
	return "", nil
}

// environment returns the program's environment; nothing is inherited.
func environment() []string { return environmentAt("/python/bin", "/box", "/python/lib") }

// environmentAt is environment for other places of interpreter, scratch directory and libraries.
func environmentAt(bin, box, lib string) []string {
	return []string{
		"PATH=" + bin, "HOME=" + box, "TMPDIR=" + box, "LANG=C.UTF-8", "TZ=UTC", "LD_LIBRARY_PATH=" + lib,
		"PYTHONHASHSEED=0", "PYTHONUTF8=1", "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1",
		"MKL_NUM_THREADS=1",
	}
}
