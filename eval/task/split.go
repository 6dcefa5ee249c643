package task

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"exp/train/rollout"
)

// Split is a part of a task's problems. A hash of the problem decides its split, so splits are disjoint
// whatever the seeds: 80 % Train, 10 % Val, 10 % Test.
type Split string

const (
	Train Split = "train" // also for supervised fine-tuning
	Val   Split = "val"
	Test  Split = "test"
)

// splitOf returns the split of the problem with this key, its canonical form.
func splitOf(kind, key string) Split {
	sum := sha256.Sum256([]byte("exp/split/1 " + kind + " " + key))
	switch binary.BigEndian.Uint64(sum[:8]) % 10 {
	case 0:
		return Test
	case 1:
		return Val
	}
	return Train
}

// check returns an error unless s is a split and n a valid number of problems.
func (s Split) check(n int) error {
	switch s {
	case Train, Val, Test:
	default:
		return fmt.Errorf("unknown split %q", string(s))
	}
	if n < 0 {
		return fmt.Errorf("%d problems", n)
	}
	return nil
}

// ScarceError is returned by Generate if a task has too few different problems for a split: Tries attempts
// in a row found nothing new.
type ScarceError struct {
	Kind        string
	Split       Split
	Want, Found int
	Tries       int
	Hint        string // what to change in the configuration
}

func (e *ScarceError) Error() string {
	return fmt.Sprintf("%s: %d different %s problems wanted, but after %d of them %d attempts in a row found "+
		"nothing new; %s",
		e.Kind, e.Want, e.Split, e.Found, e.Tries, e.Hint)
}

// scarceTries is the number of failed attempts in a row after which a task counts as exhausted. A tenth of
// all attempts fall into each smaller split, so a split with 1/1000 of its problems left is given up too
// early once in e^10 times.
const scarceTries = 100_000

// drawn collects scarce.Want different problems. draw makes one, given the keys seen so far, or fails.
// After too many failures or repeats in a row drawn returns scarce.
func drawn(scarce ScarceError, draw func(seen map[string]bool) (rollout.Problem, bool)) ([]rollout.Problem, error) {
	problems := make([]rollout.Problem, 0, scarce.Want)
	seen := make(map[string]bool, scarce.Want)
	for tries := 0; len(problems) < scarce.Want; {
		p, ok := draw(seen)
		if ok && !seen[p.ID] {
			seen[p.ID] = true
			problems = append(problems, p)
			tries = 0
			continue
		}
		if tries++; tries == scarceTries {
			scarce.Found, scarce.Tries = len(problems), tries
			return nil, &scarce
		}
	}
	return problems, nil
}
