package train

import (
	"errors"
	"slices"
	"testing"

	"exp/train/model"
)

// Scoring all that is to be learned under the reference may take long: it tells of its progress, and can be stopped.
func TestReferenceWaits(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(r *toyRun, m *model.Model, w Waiting) error
		want [][2]int // completions scored, of how many
	}{
		{"pairs", func(r *toyRun, m *model.Model, w Waiting) error {
			f, err := NewPrefer(preferConfig(), PreferParts{Backend: r.be, Model: m, Pairs: letterPairs(), Seed: hashSeed(2), Waiting: w})
			if err == nil {
				f.Close()
			}
			return err
		}, [][2]int{{0, 18}, {8, 18}, {16, 18}}},
		{"answers", func(r *toyRun, m *model.Model, w Waiting) error {
			f, err := NewUnpaired(unpairedConfig(), UnpairedParts{Backend: r.be, Model: m, Answers: letterAnswers(), Seed: hashSeed(2), Waiting: w})
			if err == nil {
				f.Close()
			}
			return err
		}, [][2]int{{0, 497}, {16, 497}, {32, 497}}}, // KTO scores each step's answers under other prompts, too
	} {
		r := newToyRun(t, GRPO, 2)
		m, err := model.New(r.be, r.model, model.Heads{LM: true}, true)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		var told [][2]int
		w := Waiting{Stop: func() bool { return len(told) == len(tt.want) },
			Phase: func(step int, phase string, done, total int) {
				if step != 0 || phase != "reference" {
					t.Errorf("%s: step %d, phase %q", tt.name, step, phase)
				}
				told = append(told, [2]int{done, total})
			}}
		if err := tt.make(r, m, w); !errors.Is(err, ErrStopped) || !slices.Equal(told, tt.want) {
			t.Errorf("%s: told %v, then %v; want %v, then ErrStopped", tt.name, told, err, tt.want)
		}
	}
}
