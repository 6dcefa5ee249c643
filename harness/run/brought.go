package run

import (
	"context"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/train/rollout"
)

// picturesOf returns the images that an agent brought to a completion.
func picturesOf(c *rollout.Completion) (list []rollout.Picture) {
	for _, im := range c.Brought() {
		list = append(list, im.Picture)
	}
	return list
}

// recordsImages returns what records images that agents brought to completions of a stage, each once. It must not be
// called concurrently.
func (x *execution) recordsImages(row store.Stage) func(list []rollout.Picture) error {
	had := map[string]bool{}
	return func(list []rollout.Picture) error {
		var fresh []store.Image
		for _, p := range list {
			if had[p.Digest] {
				continue
			}
			d, err := ident.ParseDigest(p.Digest)
			if err != nil {
				return err
			}
			had[p.Digest], fresh = true, append(fresh, store.Image{Digest: d, Format: p.Format})
		}
		return x.DB.AddImages(context.Background(), x.run.ID, row.ID, fresh)
	}
}
