package cluster

import (
	"fmt"
	"path/filepath"
	"strings"

	"exp/harness/config"
)

// SettingError says that the settings of a study do not fit its engine or each other.
type SettingError struct{ Text, Advice string }

func (e *SettingError) Error() string { return e.Text }

// Hint says what to do.
func (e *SettingError) Hint() string { return e.Advice }

// ExitCode returns the code for wrong usage.
func (e *SettingError) ExitCode() int { return 2 }

// SpoolOf returns the spool that all configurations name.
func SpoolOf(engine string, configs []*config.Resolved) (spool Spool, err error) {
	for _, r := range configs {
		dir := r.Run.Cluster.Spool
		if dir == "" {
			return spool, &SettingError{"--on " + engine + " needs cluster.spool, a directory that all nodes see",
				"exp run … --set cluster.spool=DIR, or set it in ~/.config/exp/config.yaml"}
		}
		if dir, err = filepath.Abs(dir); err != nil {
			return spool, err
		}
		if spool.Dir != "" && spool.Dir != dir {
			return spool, &SettingError{fmt.Sprintf("cluster.spool is %s in one configuration and %s in another",
				spool.Dir, dir), "use one spool: exp run … --set cluster.spool=DIR"}
		}
		spool.Dir = dir
	}
	return spool, nil
}

// CheckLogs checks that sbatch can write logs below the spool.
func (s Spool) CheckLogs() error {
	if at := strings.IndexAny(s.Dir, " \t\n%\\\"'"); at >= 0 {
		return &SettingError{fmt.Sprintf("cluster.spool %s: sbatch cannot write logs below a path with %q", s.Dir,
			s.Dir[at]), "name a directory without blanks, quotes, % and \\"}
	}
	return nil
}

// CheckPods checks that pods can have an image, and see the spool.
func (s *Study) CheckPods() error {
	for _, p := range s.Plans {
		o := p.Config.Run.Cluster.Kubernetes
		switch {
		case o.Image == "" || o.Claim == "":
			return &SettingError{"--on kubernetes needs cluster.kubernetes.image and cluster.kubernetes.claim",
				"exp config explain cluster.kubernetes.claim; an image such as debian:12 is enough"}
		case o.Mount != "" && !strings.HasPrefix(s.Spool.Dir+"/", strings.TrimSuffix(o.Mount, "/")+"/"):
			return &SettingError{fmt.Sprintf("cluster.spool %s does not lie in cluster.kubernetes.mount %s",
				s.Spool.Dir, o.Mount), "pods see only what the claim holds: put the spool there"}
		}
	}
	return nil
}
