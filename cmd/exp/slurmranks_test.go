package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"exp/harness/cluster"
)

// newRankStudy makes a study whose jobs have two ranks.
func newRankStudy(t *testing.T, args ...string) *slurmStudy {
	t.Helper()
	needsMPI(t)
	mpi := "pmix"
	if err := exec.Command("srun", "--mpi=pmix", "true").Run(); err != nil { // Slurm's plugin lacks its library
		mpi = "mpirun"
	}
	return newSlurmStudy(t, []string{"cluster.slurm.mpi=" + mpi, "cluster.slurm.ranks_per_node=2"},
		append(args, "--ranks", "2")...)
}

// A job of two ranks makes the run of one process.
func TestSlurmRanks(t *testing.T) {
	slurmNode(t, true)
	s := newRankStudy(t)
	call{}.run(s.args...).check(t, 0, "1 run done\n", "job 1  exp-smoke, 1 task", "smoke#0  collected")
	exp(t, "show", "@last", "--store", s.dir).says(t, "2 ranks")
	s.same(1, s.alone())
}

// killRank kills a rank of a job.
func (s *slurmStudy) killRank(j cluster.Submitted, rank int) error {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return err
	}
	for _, f := range files {
		env, _ := os.ReadFile(f)
		words, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		number := strconv.Itoa(rank)
		if (bytes.Contains(env, []byte("\x00SLURM_PROCID="+number+"\x00")) || // by srun or mpirun
			bytes.Contains(env, []byte("\x00OMPI_COMM_WORLD_RANK="+number+"\x00"))) &&
			bytes.Contains(words, []byte("\x00"+rankWord+"\x00")) && bytes.Contains(words, []byte(s.spool.Path(j.Config))) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			if err != nil {
				return err
			}
			return syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return fmt.Errorf("no process is rank %d of %s", rank, j.Name)
}

// A job that loses a rank, is preempted, requeued or warned of its end continues from its bundle.
func TestSlurmRanksDisturbed(t *testing.T) {
	slurmNode(t, false)
	for name, disturb := range map[string]func(s *slurmStudy, j cluster.Submitted) error{
		"killed": func(s *slurmStudy, j cluster.Submitted) error { return s.killRank(j, 1) },
		"preempted": func(*slurmStudy, cluster.Submitted) error {
			return exec.Command("sbatch", "--partition=high", "--ntasks=2", "--output=/dev/null", "--wrap", "sleep 1").Run()
		},
		"requeued": func(_ *slurmStudy, j cluster.Submitted) error { // without a warning
			return exec.Command("scontrol", "requeue", j.Number).Run()
		},
		"warned": func(_ *slurmStudy, j cluster.Submitted) error {
			return exec.Command("scancel", "--signal=USR1", "--batch", j.Number).Run()
		},
	} {
		t.Run(name, func(t *testing.T) {
			runs := append([]string{"--set", "train.steps=120", "--set", "checkpoint.every_steps=20"}, longSteps...)
			s := newRankStudy(t, runs...)
			s.run(func(j cluster.Submitted) error { return disturb(s, j) })
			s.restarted(1)
			s.same(1, s.alone(runs...))
		})
	}
}
