package cluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/harness/config"
	"exp/harness/plan"
)

// TestManifests freezes the Jobs of a study, with every option and with none. Where kubectl
// is installed, it must be able to read them.
func TestManifests(t *testing.T) {
	runs := []*plan.Run{planned(t, 0), planned(t, 1)}
	jobs, err := List(context.Background(), nil, runs)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]config.Kubernetes{
		"plain": {Image: "debian:12", Claim: "spool", CPUs: 1, MaxRestarts: 20},
		"every": {Image: "registry.example/cuda:12", Claim: "shared", Mount: "/shared", Namespace: "lab", CPUs: 8, GPUs: 1,
			Memory: "64Gi", MaxRestarts: 5, MaxParallel: 1},
	} {
		k := &Kubernetes{Spool: Spool{"/shared/it's"}, Program: "bin/exp", Dir: "/shared/work",
			Batches: Batches(jobs, []Entry{{ID: "shared", Until: "sft"}, {ID: "first"}, {ID: "second"}})}
		for i := range k.Batches {
			k.Batches[i].Options.Kubernetes = o
		}
		got, err := k.Manifests()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "kubernetes_"+name+".golden")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		t.Run(name, func(t *testing.T) { readByKubectl(t, got) })
	}
}

// readByKubectl lets kubectl read manifests, without a cluster.
func readByKubectl(t *testing.T, text string) {
	t.Helper()
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("no kubectl")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"jobs.yaml": text, "kustomization.yaml": "resources: [jobs.yaml]\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(kubectl, "kustomize", dir).CombinedOutput()
	if err != nil || strings.Count(string(out), "kind: Job\n") != 2 ||
		!strings.Contains(string(out), `exec '/shared/it'\''s/bin/exp' job `) {
		t.Errorf("%v\n%s", err, out)
	}
}
