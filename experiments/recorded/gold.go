package recorded

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
		c := &list[i]
		from := read{c.stage, c.scope}
		of, ok := golds[from]
		if !ok {
			var err error
			if of, err = goldsOf(ctx, db, c.stage, problemRoles[c.scope]); err != nil {
				return err
			}
			golds[from] = of
		}
		c.Gold = of[c.Item]
	}
	return nil
}

// goldsOf returns the right answers of the problems that a stage read in a role, by problem.
func goldsOf(ctx context.Context, db *store.DB, stage int64, role string) (map[string]string, error) {
	st, err := db.StageByID(ctx, stage)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(st.Inputs, func(in store.IO) bool { return in.Role == role })
	if i < 0 {
		return nil, nil // a run of another program
	}
	data, err := db.Blobs.Bytes(st.Inputs[i].Digest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a bundle left it out
	}
	if err != nil {
		return nil, err
	}
	golds := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for lines.Scan() {
		var p struct { // the part of a problem (train/rollout) that is read
			ID     string `json:"id"`
			Answer string `json:"answer"`
			Target string `json:"target"`
		}
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			return nil, fmt.Errorf("problems %s: %w", st.Inputs[i].Digest.Short(), err)
		}
		if golds[p.ID] = p.Answer; p.Answer == "" {
			golds[p.ID] = p.Target
		}
	}
	return golds, lines.Err()
}
