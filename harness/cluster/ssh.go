package cluster

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// OverSSH begins the name of a job, in JobVariable, that ssh started.
const OverSSH = "ssh:"

// Host is a machine that ssh reaches without a password.
type Host struct {
	Name  string
	Spool string // directory there, relative to the home directory
	Dir   string // where programs start, if the machine has it
}

// spool returns the spool as a word of shell.
func (h Host) spool() string {
	if path.IsAbs(h.Spool) {
		return shellWord(h.Spool)
	}
	return `"$HOME"/` + shellWord(h.Spool)
}

// RemoteJob is a job that a host executes. It has a spool there: the job's inputs are
// copied to it before, and its bundle and state come back after.
type RemoteJob struct {
	Entry
	Spool   Spool
	Program string // path in the spool
	Host    Host
	Heard   func(Event)
	Log     io.Writer
}

// number names a job that a host executes.
func (r *RemoteJob) number() string { return OverSSH + r.Host.Name + "_0" }

func (r *RemoteJob) list() string { return "jobs/" + r.ID + ".json" }

// Run implements Executor.
func (r *RemoteJob) Run(stop, kill context.Context) End {
	if err := r.push(kill); err != nil {
		return End{Code: -1, Err: err, Lost: unreachable(err)}
	}
	line := fmt.Sprintf("cd %s 2>/dev/null; %s=%s %s=once exec %[5]s/%s job %[5]s/%[7]s 0", shellWord(r.Host.Dir),
		JobVariable, shellWord(OverSSH+r.Host.Name), OneSignal, r.Host.spool(), r.Program, r.list())
	p := &Process{Program: "ssh", Args: r.ssh(line), Heard: r.Heard, Log: r.Log, AskByInput: true}
	end := p.Run(stop, kill)
	if end.Code == sshFailed {
		end.Err, end.Lost = fmt.Errorf("ssh %s: %s", r.Host.Name, end.Said), true
	}
	if err := r.pull(kill); err != nil && end.Err == nil && end.Code == 0 { // else the program's error says more
		end.Code, end.Err = -1, err
	}
	return end
}

// sshFailed is the exit code of ssh if it cannot connect, or lost the connection.
const sshFailed = 255

// unreachable reports whether an error says that ssh cannot reach its host.
func unreachable(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == sshFailed
}

// ssh returns the arguments that execute a line of shell on the host. A connection that carries
// nothing for a minute is lost: a job may be silent for longer, but not ssh.
func (r *RemoteJob) ssh(line string) []string {
	return []string{"-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4", "--",
		r.Host.Name, line}
}

// command executes a line of shell on the host.
func (r *RemoteJob) command(ctx context.Context, line string, in io.Reader, out io.Writer) error {
	cmd := exec.CommandContext(ctx, "ssh", r.ssh(line)...)
	var stderr strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &stderr
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("no ssh in PATH: install OpenSSH's client")
	}
	if err != nil {
		return fmt.Errorf("ssh %s: %w: %s", r.Host.Name, err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// push copies the inputs. The host's own bundle of the job, if it still has one, is the newest if
// the last attempt was there.
func (r *RemoteJob) push(ctx context.Context) error {
	if err := writeJSON(r.Spool.Path(r.list()), []Entry{r.Entry}); err != nil {
		return err
	}
	var have strings.Builder
	own := BundlePath(r.ID)
	err := r.command(ctx, fmt.Sprintf("mkdir -p %[1]s && cd %[1]s && mkdir -p %s && { ls %s %s 2>/dev/null; true; }",
		r.Host.spool(), strings.Join(spoolFolders(), " "), r.Program, own), nil, &have)
	if err != nil {
		return err
	}
	names := slices.Concat([]string{r.list(), r.Config}, r.Suites, r.Needs)
	there := strings.Fields(have.String())
	if !slices.Contains(there, r.Program) {
		names = append(names, r.Program)
	}
	last, err := r.Spool.numberOf(r.ID)
	if err != nil {
		return err
	}
	newest := last == r.number() && slices.Contains(there, own)
	if !newest && exists(r.Spool.Path(own)) {
		names = append(names, own, StatePath(r.ID))
	}
	in, out := io.Pipe()
	go func() { out.CloseWithError(writeTar(out, r.Spool, names)) }()
	err = r.command(ctx, "tar -C "+r.Host.spool()+" -xf -", in, nil)
	in.CloseWithError(io.ErrClosedPipe) // else a writer would wait for a reader that is gone
	if err != nil {
		return err
	}
	return r.Spool.note(Submitted{r.Entry, r.number()})
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// writeTar writes files of a spool.
func writeTar(w io.Writer, s Spool, names []string) error {
	t := tar.NewWriter(w)
	for _, name := range names {
		if err := addToTar(t, s.Path(name), name); err != nil {
			return err
		}
	}
	return t.Close()
}

func addToTar(t *tar.Writer, file, name string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), Size: info.Size(), Typeflag: tar.TypeReg}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(t, f)
	return err
}

// pull copies the job's state and bundle here.
func (r *RemoteJob) pull(ctx context.Context) error {
	wanted := []string{StatePath(r.ID), BundlePath(r.ID)}
	in, out := io.Pipe()
	go func() {
		out.CloseWithError(r.command(ctx, fmt.Sprintf("cd %s && set -- $(ls %s 2>/dev/null) && "+
			"if [ $# -gt 0 ]; then tar -cf - \"$@\"; fi", r.Host.spool(), strings.Join(wanted, " ")), nil, out))
	}()
	defer in.CloseWithError(io.ErrClosedPipe)
	t := tar.NewReader(in)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, in) // the end of the command
			return err
		}
		if err != nil {
			return err
		}
		if !slices.Contains(wanted, h.Name) {
			return fmt.Errorf("ssh %s: it sent %s, which nobody asked for", r.Host.Name, h.Name)
		}
		err = replace(r.Spool.Path(h.Name), 0o644, func(w io.Writer) error { _, err := io.Copy(w, t); return err })
		if err != nil {
			return err
		}
	}
}
