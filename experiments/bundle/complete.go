package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// lockPresent finds whether the bundle continues a run in the store, and the folders of weights that it lacks
// and the bundle has. If there is anything, it takes the run's lock. A run that is being executed goes on by itself.
func (in *importing) lockPresent(run store.Run) error {
	over, err := in.continues(run)
	if err != nil {
		return err
	}
	lacks := map[string]bool{}
	asked := map[string]bool{}
	for _, f := range in.Manifest.Files {
		folder := folderOf(f.Path)
		if f.Run != run.RID || folder == "" || asked[folder] {
			continue
		}
		asked[folder] = true
		lacking, err := in.lacking(run, folder, over)
		if err != nil {
			return err
		}
		if lacking {
			lacks[folder] = true
		}
	}
	if len(lacks) == 0 && !over {
		return nil
	}
	l, err := in.db.LockRun(run.RID)
	if errors.Is(err, store.ErrBusy) {
		return nil
	}
	if err == nil {
		in.locks = append(in.locks, l)
		in.lacks[run.RID] = lacks
		in.over[run.RID] = over
	}
	return err
}

// lacking reports whether the bundle should add a folder of weights to a run. A run that the bundle continues gets
// every missing folder. Another gets what it has made itself: the merged model if it has merged, checkpoints up to
// its last step but none older than one it has, and earlier stages' checkpoints only before training's first step.
func (in *importing) lacking(run store.Run, folder string, over bool) (bool, error) {
	dir := filepath.Join(in.db.RunDir(run.RID), filepath.FromSlash(folder))
	if _, err := os.Stat(dir); over || !errors.Is(err, fs.ErrNotExist) {
		return errors.Is(err, fs.ErrNotExist), notMissing(err)
	}
	step := int64(0)
	if n, _ := fmt.Sscanf(path.Base(folder), "step-%d", &step); n == 0 {
		return in.merged(run)
	}
	list, err := os.ReadDir(filepath.Dir(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	for _, e := range list {
		if e.Name() > path.Base(folder) { // steps have leading zeros
			return false, nil
		}
	}
	if strings.HasPrefix(folder, checkpointFolder+"/train-") {
		return step <= run.Steps, nil
	}
	return run.Steps == 0 && run.Status != store.Done, nil // the stage removes them at its end
}

func notMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// merged reports whether the merged folders of a run are recorded here.
func (in *importing) merged(run store.Run) (bool, error) {
	stages, err := in.db.Stages(in.ctx, run.ID)
	return slices.ContainsFunc(stages, func(s store.Stage) bool {
		return s.Kind == "merge" && slices.Contains([]store.Status{store.Done, store.Cached, store.Repeated}, s.Status)
	}), err
}

// placeFolder moves a folder of weights into the directory of a run in the store.
func (in *importing) placeFolder(rid ident.Digest, folder string) error {
	from := filepath.Join(in.tmp, rid.String(), filepath.FromSlash(folder))
	to := filepath.Join(in.db.RunDir(rid), filepath.FromSlash(folder))
	err := os.MkdirAll(filepath.Dir(to), 0o777)
	if err == nil {
		err = os.Rename(from, to)
	}
	if err == nil {
		in.placed = append(in.placed, to)
	}
	return err
}
