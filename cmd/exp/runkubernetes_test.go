package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"exp/harness/cluster"
)

// pods executes what the pods of a manifest would, one after another.
func pods(t *testing.T, manifest, store string) {
	t.Helper()
	for _, job := range strings.Split(manifest, "---\n") {
		var name, n string
		for _, line := range strings.Split(job, "\n") {
			word, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch word {
			case "name":
				if name == "" {
					name = value
				}
			case "completions":
				n = value
			}
			quoted, ok := strings.CutPrefix(strings.TrimSpace(line), "- \"")
			if !ok {
				continue
			}
			var script string
			if err := json.Unmarshal([]byte("\""+quoted), &script); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(script, "exec ") { // waits for jobs that have ended
				n := exec.Command("sh", "-c", script)
				if out, err := n.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v, %s", script, err, out)
				}
				continue
			}
			for i := range int(n[0] - '0') {
				pod := exec.Command("sh", "-c", script)
				pod.Env = append(os.Environ(), "EXP_JOB="+name, "EXP_SIGNALS=once", "JOB_COMPLETION_INDEX="+string(rune('0'+i)))
				if out, err := pod.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v, %s", script, err, out)
				}
			}
		}
	}
}

// mountNodeStore names another directory in place of the one that pods mount.
func mountNodeStore(t *testing.T, spool string) {
	t.Helper()
	node := t.TempDir()
	lists, err := filepath.Glob(filepath.Join(spool, "jobs", "*.json"))
	if err != nil || len(lists) == 0 {
		t.Fatal(lists, err)
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte(cluster.NodeStore), []byte(node))
		if err := os.WriteFile(list, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The manifests of a study and what its pods execute: the runs of one machine. A dry run
// writes nothing.
func TestRunKubernetes(t *testing.T) {
	if testing.Short() {
		t.Skip("runs processes for seconds")
	}
	t.Setenv("EXP_TEST_AS_PROGRAM", "1")
	dir, spool := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "spool")
	want := chains(t, smokeStore(t))
	args := []string{"run", smokeConfig, "--seeds", "0-1", "--on", "kubernetes", "--store", dir, "--set", "cluster.spool=" + spool,
		"--set", "cluster.kubernetes.image=debian:12", "--set", "cluster.kubernetes.claim=spool"}
	call{}.run(args[:len(args)-4]...).check(t, 2, "", "--on kubernetes needs cluster.kubernetes.image and cluster.kubernetes.claim")
	call{}.run(append(args, "--wait")...).check(t, 2, "", "--wait needs --on slurm")
	call{}.run(append(args, "--set", "cluster.kubernetes.mount=/elsewhere")...).check(t, 2, "",
		"does not lie in cluster.kubernetes.mount /elsewhere")
	dry := call{}.run(append(args, "--dry-run")...)
	if _, err := os.Stat(spool); dry.code != 0 || !os.IsNotExist(err) || !strings.Contains(dry.stdout, "kind: Job\n") {
		t.Fatalf("exit code %d, %s%s; the spool: %v", dry.code, dry.stdout, dry.stderr, err)
	}
	got := call{}.run(args...)
	if got.code != 0 || got.stdout != dry.stdout {
		t.Fatalf("exit code %d, %s; it prints\n%s\nand the dry run\n%s", got.code, got.stderr, got.stdout, dry.stdout)
	}
	mountNodeStore(t, spool)
	pods(t, got.stdout, dir)
	call{}.run("jobs", spool, "-o", "csv", "--no-header", "--fields", "name,state").
		check(t, 0, "smoke#0,done\nsmoke#0 until sft,done\nsmoke#1,done\n")
	call{}.run("collect", spool, "--store", dir, "-q").check(t, 0, "2 runs collected, 0 not done\n")
	have := chains(t, dir)
	for _, run := range []string{"flowrl 0", "flowrl 1"} {
		if have[run] == "" || have[run] != want[run] {
			t.Errorf("%s has %q, alone %q", run, have[run], want[run])
		}
	}
	call{}.run(args...).check(t, 0, "", "smoke#0  is done", "smoke#1  is done")
}
