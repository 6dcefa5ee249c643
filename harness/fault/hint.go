package fault

import (
	"errors"

	"exp/experiments/blob"
	"exp/experiments/query"
	"exp/experiments/store"
	"exp/train/checkpoint"
)

// Hint returns the advice for an error: from its method Hint, from a field of our error
// types, or by its kind. It may be empty.
func Hint(err error) string {
	var (
		method interface{ Hint() string }
		s      *store.Error
		b      *blob.Error
		c      *checkpoint.Error
		none   *query.NotFoundError
		locked *store.LockedError
		d      *store.DivergenceError
	)
	switch {
	case errors.As(err, &method) && method.Hint() != "":
		return method.Hint()
	case errors.As(err, &s) && s.Hint != "":
		return s.Hint
	case errors.As(err, &b) && b.Hint != "":
		return b.Hint
	case errors.As(err, &c) && c.Hint != "":
		return c.Hint
	case errors.As(err, &none) && none.Hint != "":
		return none.Hint
	case errors.As(err, &locked):
		return "wait until it is done, or stop that process and run again; it keeps what it saved"
	case errors.As(err, &d):
		return divergenceHint(d)
	case isAny[*checkpoint.ProbeError](err):
		return "the merged weights were not kept; run again, and if it happens again check the disk and the memory"
	}
	return ""
}

func divergenceHint(d *store.DivergenceError) string {
	kept := "the first result is kept and the new one recorded as a divergence"
	if d.RID.IsZero() {
		return kept + "; exp doctor tests whether this machine computes the same twice"
	}
	return kept + "; see exp show " + d.RID.Short()
}
