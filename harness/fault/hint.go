package fault

import (
	"errors"

	"exp/eval"
	"exp/experiments/blob"
	"exp/experiments/query"
	"exp/experiments/store"
	"exp/kernels"
	"exp/train/checkpoint"
)

// Hint returns the advice for an error: from its method Hint, from a field of our error
// types, or by its kind. It may be empty.
func Hint(err error) string {
	var (
		room   *kernels.RoomError
		method interface{ Hint() string }
		s      *store.Error
		b      *blob.Error
		c      *checkpoint.Error
		none   *query.NotFoundError
		locked *store.LockedError
		d      *store.DivergenceError
		g      *eval.NotGradedError
	)
	switch {
	case errors.As(err, &room):
		return roomHint(room.Part)
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
	case errors.As(err, &g):
		return "nothing was scored; fix the cause and run again: the completions are kept"
	}
	return ""
}

// roomHint says what makes a part of a device's memory smaller.
func roomHint(p kernels.Part) string {
	smaller := "train fewer parameters (train.lora.rank) or a smaller model"
	switch p {
	case kernels.ActivationRoom:
		smaller = "set compute.recompute: true, or make compute.micro_batch_tokens smaller"
	case kernels.ScratchRoom:
		smaller = "make compute.micro_batch_tokens or rollout.max_sequences smaller"
	case kernels.CacheRoom, kernels.StepRoom:
		smaller = "make rollout.max_sequences smaller"
	}
	return smaller + "; exp run --dry-run shows the size of every part"
}

func divergenceHint(d *store.DivergenceError) string {
	kept := "the first result is kept and the new one recorded as a divergence"
	if d.RID.IsZero() {
		return kept + "; exp doctor tests whether this machine computes the same twice"
	}
	return kept + "; see exp show " + d.RID.Short()
}
