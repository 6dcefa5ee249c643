package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"exp/harness/cluster"
)

// slurmNodes starts a Slurm of the nodes "one" and "two": hosts of their own names on this machine, each
// with a daemon and a disk that the other does not see. It returns where that disk is.
func slurmNodes(t *testing.T) (disk string) {
	t.Helper()
	if out, err := exec.Command("unshare", "--uts", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("no hosts of their own names: unshare: %v %s", err, out)
	}
	t.Setenv("SLURM_NODES", "one two")
	t.Setenv("SLURMD_TIMEOUT", "6")
	slurmNode(t, false)
	conf := os.Getenv("SLURM_CONF")
	t.Cleanup(func() { // launchers of jobs whose node failed may live on
		for _, node := range []string{"one", "two"} {
			pids, err := nodeProcesses(conf, node)
			if err != nil {
				t.Error(err)
			}
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	return filepath.Join(filepath.Dir(conf), "disk")
}

// hosts returns where the jobs of a study run, or ran last, each host once, in order.
func (s *slurmStudy) hosts() (list []string) {
	s.Helper()
	jobs, err := s.spool.Submitted()
	if err != nil {
		s.Fatal(err)
	}
	for _, j := range jobs {
		st, err := s.spool.State(j.ID)
		if err != nil {
			s.Fatal(err)
		}
		list = append(list, st.Host)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// failHost fails the node on which a job runs, once jobs run on both, and all jobs there have published a checkpoint.
func (s *slurmStudy) failHost(j cluster.Submitted) error {
	st, err := s.spool.State(j.ID)
	if err != nil {
		return err
	}
	for tries := 0; !slices.Equal(s.hosts(), []string{"one", "two"}); tries++ {
		if tries == 300 {
			return fmt.Errorf("the jobs run on %v", s.hosts())
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err := s.allPublished(st.Host); err != nil {
		return err
	}
	return failNode(s.T, os.Getenv("SLURM_CONF"), st.Host)
}

// The runs of a study are spread over the nodes; if a node fails, its runs continue.
func TestSlurmNodes(t *testing.T) {
	disk := slurmNodes(t)
	runs := append([]string{"--grid", "algo.kind=flowrl,ppo", "--seeds", "0-1", "--set", "train.steps=120",
		"--set", "checkpoint.every_steps=10"}, longSteps...)
	s := newSlurmStudy(t, []string{"cluster.store=" + disk}, runs...)
	s.run(s.failHost)
	s.restarted(1)
	s.same(4, s.alone(runs...))
}

// The ranks of a job are on two nodes, and one node fails.
func TestSlurmRanksOnNodes(t *testing.T) {
	disk := slurmNodes(t)
	nodes := t // its daemons live on after a part of the test
	for _, tt := range []struct{ name, fail string }{
		{"undisturbed", ""}, {"the first rank's node fails", "one"}, {"the other rank's node fails", "two"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runs := append([]string{"--set", "train.steps=60", "--set", "checkpoint.every_steps=10"}, longSteps...)
			s := newRankStudy(t, runs...)
			s.args = append(s.args, "--set", "cluster.slurm.ranks_per_node=1", "--set", "cluster.store="+disk)
			if tt.fail == "" {
				call{}.run(s.args...).check(t, 0, "1 run done\n", "job 1  exp-smoke, 1 task")
			} else {
				s.run(func(cluster.Submitted) error { return failNode(nodes, os.Getenv("SLURM_CONF"), tt.fail) })
				s.restarted(1)
			}
			exp(t, "show", "@last", "--env", "--store", s.dir).says(t, "rank_hosts", "one two")
			s.same(1, s.alone(runs...))
		})
	}
}
