package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"exp/harness/config"
	"exp/harness/device"
)

// CheckRanks returns an error if Slurm cannot place the ranks of a configuration's jobs.
func CheckRanks(c *config.Run, ranks int) error {
	if n := c.Cluster.Slurm.RanksPerNode; n > 0 && ranks%n != 0 {
		return &SettingError{fmt.Sprintf("--ranks %d: %s has cluster.slurm.ranks_per_node: %d, and ranks must be a "+
			"multiple", ranks, c.Name, n), "set cluster.slurm.ranks_per_node=0, and Slurm places the ranks"}
	}
	return nil
}

// gpuOfRank returns the GPU of each rank of a configuration as sbatch counts them, "1" or "a100:1";
// empty: none.
func gpuOfRank(c *config.Run) string {
	kind, _ := splitGres(c.Cluster.Slurm.Gres)
	name := c.Compute.Device
	if !strings.HasPrefix(name, device.CUDA) && (name != device.Auto || kind == "") {
		return ""
	}
	parts := strings.Split(kind, ":") // gpu, gpu:4, gpu:a100 or gpu:a100:4
	if len(parts) > 1 && strings.Trim(parts[1], "0123456789") != "" {
		return parts[1] + ":1"
	}
	return "1"
}

// splitGres splits the GPUs off a list of generic resources.
func splitGres(list string) (gpus, rest string) {
	var others []string
	for _, item := range strings.Split(list, ",") {
		if name, _, _ := strings.Cut(item, ":"); name == "gpu" {
			gpus = item
		} else {
			others = append(others, item)
		}
	}
	return gpus, strings.Join(others, ",")
}

// gres returns the generic resources of each node of a job. GPUs are not among them if each rank gets
// its own.
func (b *Batch) gres() string {
	list := b.Options.Slurm.Gres
	if b.GPU != "" {
		_, list = splitGres(list)
	}
	return list
}

// makeStore makes the directory of the attempt's store; release removes it. It lies on this node. If
// ranks on other nodes read it too, it lies in the spool, except the database, which only this node
// opens.
func (a *Attempt) makeStore() (dir string, release func(), err error) {
	local, free, err := nodeStore(a.Store)
	if err != nil || a.Ranks == 0 || a.Nodes < 2 {
		return local, free, err
	}
	dir = a.Spool.Path("stores/" + a.ID)
	err = os.RemoveAll(dir) // of an attempt that was killed
	if err == nil {
		err = os.MkdirAll(dir, 0o777)
	}
	if err == nil {
		err = os.Symlink(filepath.Join(local, database), filepath.Join(dir, database))
	}
	if err != nil {
		free()
		return "", nil, fmt.Errorf("make a store: %w", err)
	}
	return dir, func() { os.RemoveAll(dir); free() }, nil
}

// database is the file of a store that must lie on a local disk.
const database = "exp.db"
