package cluster

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"text/template"
	"time"

	"exp/harness/config"
	"exp/harness/ranks/launch"
)

//go:embed scripts
var scripts embed.FS

// Batch is an array of jobs that wait for the same earlier batches.
type Batch struct {
	Name    string
	Options config.Cluster
	Entries []Entry
	After   []int  // batches of the study
	Ranks   int    // of each job; 0: a single process
	GPU     string // that each rank gets, as sbatch counts them; empty: none
}

// Script returns the batch script of an array, which executes the entries of the file
// list with program.
func (b *Batch) Script(program, list, log string) (string, error) {
	t, err := template.New("slurm.sh").Funcs(template.FuncMap{"quote": shellWord}).ParseFS(scripts, "scripts/slurm.sh")
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = t.Execute(&out, struct {
		*Batch
		Slurm                        config.Slurm
		Program, List, Log, Variable string
		Gres, Launcher               string
		Last, Tasks, Nodes           int
	}{b, b.Options.Slurm, program, list, log, OneSignal, b.gres(), launch.Variable, len(b.Entries) - 1,
		max(1, b.Ranks), b.Ranks / max(1, b.Options.Slurm.RanksPerNode)})
	return out.String(), err
}

// shellWord quotes a word for a shell.
func shellWord(w string) string { return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'" }

// Slurm submits jobs to Slurm with its own commands.
type Slurm struct{}

// Submit submits a script that waits for earlier arrays to succeed, and returns the
// array's number.
func (Slurm) Submit(ctx context.Context, script string, after []string) (string, error) {
	args := []string{"--parsable"}
	if len(after) > 0 {
		args = append(args, "--dependency=afterok:"+strings.Join(after, ":"), "--kill-on-invalid-dep=yes")
	}
	out, err := slurmCommand(ctx, "sbatch", append(args, script)...)
	if err != nil {
		return "", err
	}
	return jobNumber(out)
}

// jobNumber returns the number that sbatch --parsable printed, in its last line: a site's own sbatch may print more
// before it.
func jobNumber(out string) (string, error) {
	out = strings.TrimSpace(out)
	last := out[strings.LastIndexByte(out, '\n')+1:]
	number, _, _ := strings.Cut(strings.TrimSpace(last), ";") // ";CLUSTER" follows in a federation
	if number == "" || strings.Trim(number, "0123456789") != "" {
		said := fmt.Sprintf("--parsable asks for the number of a job, but it printed %q", out)
		return "", &RefusedError{"sbatch", said}
	}
	return number, nil
}

// States returns the states of the user's jobs that wait or run, by number ("12_3").
func (Slurm) States(ctx context.Context) (map[string]string, error) {
	out, err := slurmCommand(ctx, "squeue", "--noheader", "--array", "--me", "--format=%i|%T")
	if err != nil {
		return nil, err
	}
	states := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if number, state, ok := strings.Cut(line, "|"); ok {
			states[number] = strings.ToLower(state)
		}
	}
	return states, nil
}

// Requeue puts a running job back into the queue; Slurm then ends its processes.
func (Slurm) Requeue(ctx context.Context, number string) error {
	_, err := slurmCommand(ctx, "scontrol", "requeue", number)
	return err
}

// FateOf says what Slurm does with a job that it signalled in its attempt after so many
// restarts. Slurm counts a restart as soon as it decides to queue a job again, and calls a
// job completing as soon as it ends it. It asks several times while Slurm does not answer.
func (Slurm) FateOf(ctx context.Context, number string, restarts int) (Fate, error) {
	for try := 1; ; try++ {
		out, err := slurmCommand(ctx, "scontrol", "show", "job", "--oneliner", number)
		if err == nil {
			return fateOf(out, restarts), nil
		}
		if try == fateTries {
			return Unknown, err
		}
		time.Sleep(fatePause)
	}
}

// A controller that is busy or restarts answers again after a few seconds. After its last signal a
// job lives for 30, which is KillWait's default.
const (
	fateTries = 4
	fatePause = 2 * time.Second
)

func fateOf(shown string, restarts int) Fate {
	field := map[string]string{}
	for _, word := range strings.Fields(shown) {
		if name, value, ok := strings.Cut(word, "="); ok {
			field[name] = value
		}
	}
	if n, err := strconv.Atoi(field["Restarts"]); err == nil && n > restarts {
		return Requeuing
	}
	switch field["JobState"] {
	case "COMPLETING", "CANCELLED":
		if field["Reason"] != "TimeLimit" {
			return Cancelled
		}
	}
	return Kept
}

// AbsentError says that Slurm's commands are not installed.
type AbsentError struct{ Command string }

func (e *AbsentError) Error() string {
	return "no " + e.Command + " in PATH: Slurm is not installed on this machine"
}

// Hint says what to do.
func (e *AbsentError) Hint() string {
	return "run it on a login node of the cluster; --on slurm --dry-run prints the scripts anywhere"
}

// ExitCode returns the code for a missing resource.
func (e *AbsentError) ExitCode() int { return 7 }

// RefusedError is an error of a command of Slurm.
type RefusedError struct {
	Command string
	Said    string
}

func (e *RefusedError) Error() string { return e.Command + ": " + e.Said }

// Hint says what to do.
func (e *RefusedError) Hint() string {
	said := strings.ToLower(e.Said)
	switch {
	case strings.Contains(said, "partition"):
		return "set cluster.slurm.partition to one that sinfo lists"
	case strings.Contains(said, "account"), strings.Contains(said, "qos"):
		return "cluster.slurm.account and cluster.slurm.qos name them"
	case e.Command == "sbatch":
		return "exp config explain cluster.slurm lists the options; --dry-run prints the scripts"
	}
	return "sinfo and scontrol ping say whether Slurm works here"
}

// ExitCode returns the code for a missing resource.
func (e *RefusedError) ExitCode() int { return 7 }

func slurmCommand(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", &AbsentError{name}
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		said := strings.ReplaceAll(strings.TrimSpace(stderr.String()), name+": error: ", "")
		return "", &RefusedError{name, cmp.Or(strings.ReplaceAll(said, "\n", "; "), err.Error())}
	}
	return string(out), nil
}

// Batches groups jobs into arrays: each shared job alone, and runs by what they need and
// by the options of the batch system.
func Batches(jobs []Job, entries []Entry) []Batch {
	var list []Batch
	of := map[int]int{}      // batch of a shared job
	with := map[string]int{} // batch of runs that are alike
	for i, j := range jobs {
		var after []int
		for _, n := range j.Needs {
			if at, shared := of[n]; shared {
				after = append(after, at)
			}
		}
		options := j.Run.Config.Run.Cluster
		ranks, gpu := entries[i].Ranks, ""
		if ranks > 0 {
			gpu = gpuOfRank(&j.Run.Config.Run)
		}
		key := fmt.Sprintf("%v %+q %s", after, fmt.Sprint(options), gpu)
		at, known := with[key]
		if j.Until != "" || !known {
			at = len(list)
			list = append(list, Batch{Name: "exp-" + j.Run.Config.Run.Name, Options: options, After: after,
				Ranks: ranks, GPU: gpu})
			if j.Until == "" {
				with[key] = at
			} else {
				of[i] = at
				list[at].Name += "-" + string(j.Until)
			}
		}
		list[at].Entries = append(list[at].Entries, entries[i])
	}
	return list
}

// Submission is a study in the spool, as it is submitted.
type Submission struct {
	Spool   Spool
	Program string // path in the spool
	Batches []Batch
}

// file returns the path in the spool of the list or the script of a batch.
func (s *Submission) file(i int, suffix string) string {
	return "jobs/" + s.Batches[i].Entries[0].ID + suffix
}

// Scripts returns the script of each batch.
func (s *Submission) Scripts() ([]string, error) {
	var list []string
	for i := range s.Batches {
		if err := checkWarning(s.Batches[i].Options.Slurm); err != nil {
			return nil, err
		}
		text, err := s.Batches[i].Script(s.Spool.Path(s.Program), s.Spool.Path(s.file(i, ".json")),
			s.Spool.Path("log/%A_%a.log"))
		if err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, nil
}

// Submit writes lists and scripts, submits them, and notes the number of each job. It
// returns the numbers of the arrays, on an error of the arrays submitted so far.
func (s *Submission) Submit(ctx context.Context) (numbers []string, err error) {
	texts, err := s.Scripts()
	if err != nil {
		return nil, err
	}
	for i, b := range s.Batches {
		if err := writeJSON(s.Spool.Path(s.file(i, ".json")), b.Entries); err != nil {
			return numbers, err
		}
		if err := s.Spool.Write(s.file(i, ".sbatch"), []byte(texts[i])); err != nil {
			return numbers, err
		}
		var after []string
		for _, n := range b.After {
			after = append(after, numbers[n])
		}
		number, err := Slurm{}.Submit(ctx, s.Spool.Path(s.file(i, ".sbatch")), after)
		if err != nil {
			return numbers, err
		}
		numbers = append(numbers, number)
		for task, e := range b.Entries {
			if err := s.Spool.note(Submitted{e, fmt.Sprintf("%s_%d", number, task)}); err != nil {
				return numbers, err
			}
		}
	}
	return numbers, nil
}
