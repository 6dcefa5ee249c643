package cluster

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"

	"exp/experiments/ident"
)

// JobVariable is the environment variable with the name of a Kubernetes Job.
const JobVariable = "EXP_JOB"

// NodeStore is where a pod mounts its node's disk.
const NodeStore = "/tmp/exp-store"

// Kubernetes is a study in the spool as manifests of indexed Jobs. It contacts no cluster.
type Kubernetes struct {
	Spool   Spool
	Program string // path in the spool
	Dir     string // where programs start
	Batches []Batch
}

// List returns the path in the spool of the job list of a batch.
func (k *Kubernetes) List(i int) string { return "jobs/" + k.name(i) + ".json" }

// name names the Job of a batch, with a digest of its runs: a Job of a cluster cannot change.
func (k *Kubernetes) name(i int) string {
	b := k.Batches[i]
	var ids []string
	for _, e := range b.Entries {
		ids = append(ids, e.ID)
	}
	words := strings.FieldsFunc(strings.ToLower(b.Name), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	const most = 40 // of 63 characters, with the digest and the number of a pod
	name := strings.Join(words, "-")
	name = strings.TrimRight(name[:min(len(name), most)], "-")
	return name + "-" + ident.Sum([]byte(strings.Join(ids, " "))).Short()
}

// Number names a job: the Job and its index.
func (k *Kubernetes) Number(i, task int) string { return fmt.Sprintf("%s_%d", k.name(i), task) }

// Manifest returns the Job of a batch. A pod waits until the jobs that it needs are done.
func (k *Kubernetes) Manifest(i int) (string, error) {
	b := k.Batches[i]
	o := b.Options.Kubernetes
	t, err := template.New("kubernetes.yaml").Funcs(template.FuncMap{"quote": yamlText}).
		ParseFS(scripts, "scripts/kubernetes.yaml")
	if err != nil {
		return "", err
	}
	var wait []string
	for _, n := range b.After {
		for _, e := range k.Batches[n].Entries {
			wait = append(wait, waitFor(k.Spool.Path(StatePath(e.ID)), e.Name))
		}
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{
		"Name": k.name(i), "Options": o, "N": len(b.Entries), "Parallel": cmp.Or(o.MaxParallel, len(b.Entries)),
		"Wait": strings.Join(wait, "\n"), "Dir": k.Dir, "Mount": cmp.Or(o.Mount, k.Spool.Dir), "Store": NodeStore,
		"Signals": OneSignal, "Variable": JobVariable,
		"Command": fmt.Sprintf(`exec %s job %s "$JOB_COMPLETION_INDEX"`, shellWord(k.Spool.Path(k.Program)),
			shellWord(k.Spool.Path(k.List(i)))),
	})
	return out.String(), err
}

// How a pod polls the state of a job that it needs.
const (
	lookPause   = 5                // seconds between two polls
	silentLooks = 720              // an hour of polls without news from a running job: it is gone
	absentLooks = 24 * silentLooks // a day, for a job that waits for a node
)

// waitFor returns the shell script that waits until a job is done. It exits with 2, which ends the
// pod's index, if the job failed, and with 1, which counts as a restart, if the job fell silent
// while it ran, or is not running and has not been for a day.
func waitFor(state, name string) string {
	return fmt.Sprintf(`said= silent=0
until grep -qs '"status": "%[1]s"' %[4]s; do
  if grep -qs '"status": "%[2]s"' %[4]s; then echo %[5]s' failed' >&2; exit 2; fi
  now=$(grep -s '"time"' %[4]s)
  silent=$((silent + 1))
  if [ "$now" != "$said" ]; then said=$now silent=0; fi
  if [ $silent -ge %[6]d ] && grep -qs '"status": "%[3]s"' %[4]s; then
    echo %[5]s' says nothing any more' >&2; exit 1
  fi
  if [ $silent -ge %[8]d ]; then echo %[5]s' has not run for a day: kubectl describe job says why' >&2; exit 1; fi
  sleep %[7]d
done`, Done, Failed, Running, shellWord(state), shellWord(name), silentLooks, lookPause, absentLooks)
}

// yamlText writes a text as YAML on one line: JSON is YAML.
func yamlText(text string) (string, error) {
	b, err := json.Marshal(text)
	return string(b), err
}

// Manifests returns the Jobs of all batches as one document.
func (k *Kubernetes) Manifests() (string, error) {
	var list []string
	for i := range k.Batches {
		text, err := k.Manifest(i)
		if err != nil {
			return "", err
		}
		list = append(list, text)
	}
	return strings.Join(list, "---\n"), nil
}

// Prepare writes the job lists, notes the name of each job, and forgets earlier failures.
func (k *Kubernetes) Prepare() error {
	for i, b := range k.Batches {
		if err := writeJSON(k.Spool.Path(k.List(i)), b.Entries); err != nil {
			return err
		}
		for task, e := range b.Entries {
			if err := k.Spool.forgive(e.ID); err != nil {
				return err
			}
			if err := k.Spool.note(Submitted{e, k.Number(i, task)}); err != nil {
				return err
			}
		}
	}
	return nil
}
