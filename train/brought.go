package train

import (
	"errors"
	"fmt"

	"exp/train/rollout"
)

// show gives the images of a completion from a record, which an agent brought, their tokens here.
func (t *Trainer) show(c *rollout.Completion) error {
	return c.Show(func(im rollout.ShownImage) (int32, error) {
		if t.Show == nil {
			return 0, errors.New("train: an agent brought an image, and nothing shows it to the model")
		}
		x, err := t.Show(im.Picture)
		if err == nil && x.Tokens() != im.Tokens {
			err = fmt.Errorf("it has %d tokens here, and %d in the record", x.Tokens(), im.Tokens)
		}
		return x.First, err
	})
}

// Brought returns the images that agents brought to completions that State holds.
func (t *Trainer) Brought() (list []rollout.Picture) {
	add := func(c *rollout.Completion) {
		for _, im := range c.Brought() {
			list = append(list, im.Picture)
		}
	}
	for _, c := range t.pending {
		for i := range c.all {
			add(c.all[i].Completion)
		}
	}
	if t.tracker != nil {
		for _, k := range t.tracker.known {
			if k.last != nil {
				add(k.last)
			}
		}
	}
	return list
}
