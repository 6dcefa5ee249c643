package main

import (
	"io"
	"os"
	"strings"

	"exp/cmd/exp/cli"
	"exp/harness/cluster"
	"exp/harness/config"
)

// runKubernetes fills the spool for the runs that are missing, and prints the manifests of
// their Jobs. It contacts no cluster.
func (a *app) runKubernetes(c *cli.Context, configs []*config.Resolved, seeds []int64) error {
	s, err := a.openSpoolStudy(c, configs, seeds)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.checkPods(configs); err != nil {
		return err
	}
	if !c.Bool("dry-run") {
		if err := s.makeSpool(); err != nil {
			return err
		}
		if err := s.collectEarlier(s.c.Context); err != nil {
			return err
		}
	}
	missing, err := s.missing(nil)
	if err != nil {
		return err
	}
	if len(missing) == 0 && len(s.begun) > 0 {
		return s.beginners()
	}
	for _, line := range append(s.present, s.begun...) {
		s.Note("%s", line)
	}
	list, err := s.list(missing)
	if err != nil {
		return err
	}
	entries := s.entries(list)
	for i := range entries {
		o := list[i].Run.Config.Run.Cluster.Kubernetes
		entries[i].Threads, entries[i].MaxRestarts, entries[i].Store = o.CPUs, o.MaxRestarts, cluster.NodeStore
	}
	k := &cluster.Kubernetes{Spool: s.spool, Batches: cluster.Batches(list, entries)}
	if k.Program, err = programPath(); err != nil {
		return err
	}
	if k.Dir, err = os.Getwd(); err != nil {
		return err
	}
	if !c.Bool("dry-run") && len(missing) > 0 {
		if k.Program, err = s.provide(missing); err != nil {
			return err
		}
		if err := k.Prepare(); err != nil {
			return err
		}
	}
	text, err := k.Manifests()
	if err != nil {
		return err
	}
	return s.Out.PrintDocument(cli.Document{Schema: "exp.kubernetes/1", Data: map[string]any{"manifests": text},
		Human: func(w io.Writer) error { _, err := io.WriteString(w, text); return err }})
}

// checkPods checks the options of Kubernetes.
func (s *spoolStudy) checkPods(configs []*config.Resolved) error {
	for _, r := range configs {
		o := r.Run.Cluster.Kubernetes
		switch {
		case o.Image == "" || o.Claim == "":
			return cli.Usagef("--on kubernetes needs cluster.kubernetes.image and cluster.kubernetes.claim").
				Advise("exp config explain cluster.kubernetes.claim; an image such as debian:12 is enough")
		case o.Mount != "" && !strings.HasPrefix(s.spool.Dir+"/", strings.TrimSuffix(o.Mount, "/")+"/"):
			return cli.Usagef("cluster.spool %s does not lie in cluster.kubernetes.mount %s", s.spool.Dir, o.Mount).
				Advise("pods see only what the claim holds: put the spool there")
		}
	}
	return nil
}
