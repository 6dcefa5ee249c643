package compare

import (
	"testing"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// A run that two parts of a selection name counts once.
func TestAddArmCountsOnce(t *testing.T) {
	run := func(id int64) store.Run { return store.Run{ID: id, XID: ident.Digest{1}} }
	arms := addArm(nil, Arm{Runs: []store.Run{run(1), run(2)}})
	arms = addArm(arms, Arm{Runs: []store.Run{run(2), run(3)}})
	if len(arms) != 1 || len(arms[0].Runs) != 3 {
		t.Errorf("arms %+v, want one of three runs", arms)
	}
	other := store.Run{ID: 4, XID: ident.Digest{2}}
	if arms = addArm(arms, Arm{Runs: []store.Run{other}}); len(arms) != 2 {
		t.Errorf("another experiment joined the arm: %+v", arms)
	}
}
