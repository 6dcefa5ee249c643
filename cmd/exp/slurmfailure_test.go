package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"exp/harness/cluster"
)

// nodeProcesses returns the processes of a Slurm's node: its daemon and what runs in its jobs.
func nodeProcesses(conf string) (pids []int, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		env, err := os.ReadFile(f)
		if err != nil || !bytes.Contains(env, []byte("SLURM_CONF="+conf+"\x00")) {
			continue
		}
		name, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "comm"))
		inJob := bytes.Contains(env, []byte("SLURM_JOB_ID="))
		if daemon := strings.TrimSpace(string(name)); inJob || daemon == "slurmd" || daemon == "slurmstepd" {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			if err != nil {
				return nil, err
			}
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// nodeState returns the state of the only node: "mixed", "down*", "idle".
func nodeState() (string, error) {
	out, err := exec.Command("sinfo", "--noheader", "--partition=low", "--format=%T").Output()
	return strings.TrimSpace(string(out)), err
}

// failNode kills everything on the node without a warning, as a machine that loses power does,
// waits until Slurm says that it is down, and starts its daemon again.
func failNode(t *testing.T, conf string) error {
	pids, err := nodeProcesses(conf)
	if err != nil || len(pids) < 3 {
		return errors.Join(err, errors.New("the node has no daemon, step and job"))
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			return err
		}
	}
	for range 600 {
		state, err := nodeState()
		if err != nil {
			return err
		}
		if strings.HasPrefix(state, "down") {
			t.Logf("the node is %s", state)
			again := exec.Command("slurmd", "-D", "-c", "-f", conf)
			if err := again.Start(); err != nil {
				return err
			}
			t.Cleanup(func() {
				again.Process.Kill()
				again.Wait()
			})
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return errors.New("the node is not down after a minute")
}

// A node that fails loses its jobs without a warning. Slurm queues them again, and they continue
// from the bundles in the spool.
func TestSlurmNodeFailure(t *testing.T) {
	t.Setenv("SLURMD_TIMEOUT", "6")
	slurmNode(t, false)
	runs := append([]string{"--seeds", "0-1", "--set", "train.steps=120", "--set", "checkpoint.every_steps=10"}, longSteps...)
	s := newSlurmStudy(t, nil, runs...)
	s.run(func(cluster.Submitted) error { return failNode(t, os.Getenv("SLURM_CONF")) })
	s.restarted(1)
	s.same(2, s.alone(runs...))
}
