package task

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"exp/train/rollout"
)

// Split is a part of a task's problems. A problem's split is decided by a hash of
// the problem itself, so the splits are disjoint whatever the seeds: 80 % Train,
// 10 % Val, 10 % Test.
type Split string

const (
	Train Split = "train" // also for supervised fine-tuning
	Val   Split = "val"
	Test  Split = "test"
)

// splitOf is the split of the problem that key, its canonical form, names.
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

// check is an error unless s is a split and n a number of problems.
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

// ScarceError is returned by Generate where a task has too few different problems
// for a split: Tries attempts in a row made nothing new.
type ScarceError struct {
	Kind        string
	Split       Split
	Want, Found int
	Tries       int
	Hint        string // what to change in the configuration
}

func (e *ScarceError) Error() string {
	return fmt.Sprintf("%s: %d different %s problems wanted, but after %d of them %d attempts in a row made "+
		"nothing new; %s",
		e.Kind, e.Want, e.Split, e.Found, e.Tries, e.Hint)
}

// scarceTries is how many attempts in a row may fail before a task counts as
// exhausted. A tenth of the attempts fall into the smaller splits, so at this number a
// split of which 1/1000 is left is given up once in e^10 times.
const scarceTries = 100_000

// drawn collects scarce.Want different problems. draw makes one, given those that are
// there, or fails; where it has failed or repeated itself too often, scarce is the error.
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
