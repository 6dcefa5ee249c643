package recorded

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"exp/experiments/store"
)

// problemRoles are the inputs in which stages read the problems of a scope (harness/config names them).
var problemRoles = map[string]string{TrainSuite: "problems/train", "val": "problems/val", "eval": "problems"}

// AddGolds fills in the right answers of completions, from the problems that their stages read. A problem with many
// right answers has one of them. Completions of problems that the store does not hold stay without.
func AddGolds(ctx context.Context, db *store.DB, list []Completion) error {
	type read struct {
		stage int64
		scope string
	}
	golds := map[read]map[string]string{} // by problem
	for i := range list {
		from := read{list[i].stage, list[i].scope}
		if golds[from] == nil {
			golds[from] = map[string]string{}
		}
		golds[from][list[i].Item] = ""
	}
	for from, of := range golds {
		if err := findGolds(ctx, db, from.stage, problemRoles[from.scope], of); err != nil {
			return err
		}
	}
	for i := range list {
		list[i].Gold = golds[read{list[i].stage, list[i].scope}][list[i].Item]
	}
	return nil
}

// findGolds sets the right answers of some problems that a stage read in a role. It reads the file as far as the last
// of them, and decodes no others: a file of programs' tests may have gigabytes.
func findGolds(ctx context.Context, db *store.DB, stage int64, role string, golds map[string]string) error {
	st, err := db.StageByID(ctx, stage)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(st.Inputs, func(in store.IO) bool { return in.Role == role })
	if i < 0 {
		return nil // a run of another program
	}
	f, err := db.Blobs.Open(st.Inputs[i].Digest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a bundle left it out
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewReaderSize(f, 1<<16)
	for left := len(golds); left > 0; {
		line, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return err
		}
		if len(line) > 0 {
			found, bad := findGold(line, golds)
			if bad != nil {
				return fmt.Errorf("problems %s: %w", st.Inputs[i].Digest.Short(), bad)
			}
			if found {
				left--
			}
		}
		if err == io.EOF {
			return nil
		}
	}
	return nil
}

// findGold sets the right answer of a problem, as package task writes it, and reports whether it is one of golds.
func findGold(line []byte, golds map[string]string) (bool, error) {
	if rest, ok := bytes.CutPrefix(line, []byte(`{"id":"`)); ok {
		id, _, ok := bytes.Cut(rest, []byte(`"`))
		if _, wanted := golds[string(id)]; ok && !wanted && !bytes.Contains(id, []byte(`\`)) {
			return false, nil
		}
	}
	var p struct { // the part of a problem (train/rollout) that is read
		ID     string `json:"id"`
		Answer string `json:"answer"`
		Target string `json:"target"`
	}
	if err := json.Unmarshal(line, &p); err != nil {
		return false, err
	}
	_, wanted := golds[p.ID]
	if wanted {
		golds[p.ID] = cmp.Or(p.Answer, p.Target)
	}
	return wanted, nil
}
