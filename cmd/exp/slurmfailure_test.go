package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"exp/harness/cluster"
)

// nodeProcesses returns the processes of a Slurm's node: its daemon and what runs in its jobs. The only
// node has no name; others are hosts by themselves.
func nodeProcesses(conf, node string) (pids []int, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	own, _ := os.Readlink("/proc/self/ns/uts")
	for _, f := range files {
		env, err := os.ReadFile(f)
		if err != nil || !bytes.Contains(env, []byte("SLURM_CONF="+conf+"\x00")) {
			continue
		}
		if host, err := os.Readlink(filepath.Join(filepath.Dir(f), "ns/uts")); err != nil || node != "" &&
			(host == own || !bytes.Contains(env, []byte("SLURMD_NODENAME="+node+"\x00"))) {
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

// nodeState returns the state of a node, or of the only one: "mixed", "down*", "idle".
func nodeState(node string) (string, error) {
	args := []string{"--noheader", "--partition=low", "--format=%T"}
	if node != "" {
		args = append(args, "--nodes="+node)
	}
	out, err := exec.Command("sinfo", args...).Output()
	return strings.TrimSpace(string(out)), err
}

// failNode kills everything on a node without a warning, as a machine that loses power does,
// waits until Slurm says that it is down, and starts its daemon again. The only node has no name.
func failNode(t *testing.T, conf, node string) error {
	pids, err := nodeProcesses(conf, node)
	if err != nil || len(pids) < 3 {
		return errors.Join(err, errors.New("the node has no daemon, step and job"))
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			return err
		}
	}
	for range 600 {
		state, err := nodeState(node)
		if err != nil {
			return err
		}
		if strings.HasPrefix(state, "down") {
			t.Logf("the node is %s", state)
			again := exec.Command("slurmd", "-D", "-c", "-f", conf)
			if node != "" {
				again = exec.Command("../../harness/cluster/testdata/node.sh", filepath.Dir(conf), node)
			}
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

// allPublished waits until every job that runs on a host has published a checkpoint.
func (s *slurmStudy) allPublished(host string) error {
	jobs, err := s.spool.Submitted()
	waits := func(j cluster.Submitted) bool {
		st, err := s.spool.State(j.ID)
		return err == nil && st.Host == host && st.Status == cluster.Running && st.Checkpoint == 0
	}
	for slices.ContainsFunc(jobs, waits) {
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// A node that fails loses its jobs without a warning. Slurm queues them again, and they continue
// from the bundles in the spool.
func TestSlurmNodeFailure(t *testing.T) {
	t.Setenv("SLURMD_TIMEOUT", "6")
	slurmNode(t, false)
	runs := append([]string{"--seeds", "0-1", "--set", "train.steps=120", "--set", "checkpoint.every_steps=10"}, longSteps...)
	s := newSlurmStudy(t, nil, runs...)
	s.run(func(j cluster.Submitted) error {
		st, err := s.spool.State(j.ID)
		if err := errors.Join(err, s.allPublished(st.Host)); err != nil {
			return err
		}
		return failNode(t, os.Getenv("SLURM_CONF"), "")
	})
	s.restarted(1)
	s.same(2, s.alone(runs...))
}
