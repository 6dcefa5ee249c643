package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"exp/experiments/ident"
)

// fakeSSH puts an ssh in the way that executes its line here, in a home directory for each
// host. The host "away" refuses.
func fakeSSH(t *testing.T) (homes string) {
	t.Helper()
	dir := t.TempDir()
	homes = filepath.Join(dir, "homes")
	text := fmt.Sprintf(`#!/bin/sh
[ "$1 $2" = "-o BatchMode=yes" ] || { echo "asks for a password" >&2; exit 255; }
[ "$3 $4 $5 $6" = "-o ServerAliveInterval=15 -o ServerAliveCountMax=4" ] || { echo "may hang" >&2; exit 255; }
[ "$7" = -- ] || { echo "the host may be taken for an option" >&2; exit 255; }
shift 5
[ "$3" = away ] && { echo "connect to host away port 22: Connection refused" >&2; exit 255; }
mkdir -p '%[1]s'/"$3" && cd '%[1]s'/"$3" || exit 1
echo "$3 $4" >>'%[1]s'/log
HOME=$PWD exec sh -c "$4"
`, homes)
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("EXP_TEST_AS_PROGRAM", "1")
	return homes
}

// Two arms and two seeds on two hosts: the runs of one machine. Each host gets the program
// once; a broken connection is an error that names the host.
func TestRunSSH(t *testing.T) {
	if testing.Short() {
		t.Skip("runs processes for seconds")
	}
	homes := fakeSSH(t)
	want := chains(t, smokeStore(t))
	dir := filepath.Join(t.TempDir(), "store")
	args := []string{"run", smokeConfig, "--grid", "algo.kind=flowrl,ppo", "--seeds", "0-1", "--tag", "study", "--store", dir}
	call{}.run(append(args, "--on", "ssh:")...).check(t, 2, "", "name the hosts, as in ssh:gpu1,gpu2")
	call{}.run(append(args, "--on", "ssh:one,-oProxyCommand=touch x")...).check(t, 2, "",
		"-oProxyCommand=touch x is an option of ssh, not a host")
	away := call{}.run(append(args, "--on", "ssh:away")...)
	if away.code != 1 {
		t.Errorf("exit code %d, want 1", away.code)
	}
	for _, text := range []string{"4 runs in 5 jobs, 1 at once on away",
		"ssh away: exit status 255: connect to host away port 22: Connection refused"} {
		if !strings.Contains(away.stderr, text) {
			t.Errorf("nothing says %q:\n%s", text, away.stderr)
		}
	}
	// Other hosts execute what one that cannot be reached had.
	got := call{}.run(append(args, "--on", "ssh:away,one,two")...)
	if got.code != 0 || !strings.Contains(got.stderr, "4 runs in 5 jobs, 3 at once on away, one, two") ||
		!strings.Contains(got.stderr, "Connection refused; another host executes it, and this one gets no more") {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	have := chains(t, dir)
	for _, run := range []string{"flowrl 0", "flowrl 1", "ppo 0"} {
		if have[run] == "" || have[run] != want[run] {
			t.Errorf("%s has %q, alone %q", run, have[run], want[run])
		}
	}
	if len(have) != 4 || stagesDone(t, dir, "sft") != 1 {
		t.Errorf("%d runs are done, with %d sft stages; want 4 and 1", len(have), stagesDone(t, dir, "sft"))
	}
	for _, host := range []string{"one", "two"} {
		programs, err := filepath.Glob(filepath.Join(homes, host, "exp-spool", "bin", "*"))
		if err != nil || len(programs) != 1 {
			t.Errorf("%s has the programs %q, %v", host, programs, err)
		}
	}
	call{}.run(append(args, "--on", "ssh:one,two")...).check(t, 0, "4 runs done\n", "smoke_algo.kind-ppo#1  is done")
}

// A program that a host cannot start is an error with the host's own words.
func TestRunSSHCannotStart(t *testing.T) {
	homes := fakeSSH(t)
	dir := filepath.Join(t.TempDir(), "store")
	args := []string{"run", smokeConfig, "--store", dir, "--on", "ssh:one"}
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	// The host has a program of that name already, which cannot start.
	bin := filepath.Join(homes, "one", "exp-spool", "bin")
	broken := filepath.Join(bin, ident.Sum(program).String())
	if err := os.MkdirAll(bin, 0o777); err != nil {
		t.Fatal(err)
	}
	text := "#!/bin/sh\necho 'exp: libm.so.6: version GLIBC_2.99 not found' >&2\nexit 127\n"
	if err := os.WriteFile(broken, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	got := call{}.run(args...)
	got.check(t, 1, got.stdout, "exp: libm.so.6: version GLIBC_2.99 not found")
	if strings.Contains(got.stderr, "empty archive") {
		t.Errorf("it says %q", got.stderr)
	}
}

// Ctrl-C reaches the program on the host, which saves; the same command goes on from there.
func TestRunSSHInterrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("runs processes for seconds")
	}
	fakeSSH(t)
	dir, node := filepath.Join(t.TempDir(), "store"), t.TempDir()
	sets := []string{"run", smokeConfig, "--set", "train.steps=200", "--set", "eval.online.every_steps=0",
		"--set", "checkpoint.every_steps=20"}
	args := append(sets[:len(sets):len(sets)], "--on", "ssh:one", "--store", dir, "--set", "cluster.store="+node)
	signals := make(chan os.Signal, 1)
	go func() {
		for steps := int64(0); steps == 0; time.Sleep(5 * time.Millisecond) {
			stores, _ := filepath.Glob(filepath.Join(node, "exp-*"))
			for _, f := range stores {
				steps = recordedSteps(f)
			}
		}
		signals <- syscall.SIGINT
	}()
	got := call{signals: signals}.run(args...)
	if got.code != 130 || !strings.Contains(got.stderr, "to continue: exp "+strings.Join(args, " ")) {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	if again := (call{}).run(args...); again.code != 0 {
		t.Fatalf("exit code %d: %s", again.code, again.stderr)
	}
	call{}.run("query", "SELECT count(*) AS n FROM attempts", "--store", dir, "-o", "csv", "--no-header").check(t, 0, "2\n")
	alone := filepath.Join(t.TempDir(), "alone")
	if ref := (call{}).run(append(sets, "--store", alone, "-q")...); ref.code != 0 {
		t.Fatal(ref.stderr)
	}
	if have, want := chains(t, dir)["flowrl 0"], chains(t, alone)["flowrl 0"]; have == "" || have != want {
		t.Errorf("it has %q, alone %q", have, want)
	}
}
