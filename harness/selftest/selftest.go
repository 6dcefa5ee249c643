// Package selftest proves on the machine at hand what the project promises of every
// machine: a small training, from sampling to updates, gives the same bits whatever
// instructions and however many threads compute it, and the log-probs that the
// sampler records are those that the trainer computes.
//
// The training is FlowRL on a toy that needs nothing from outside: its digest
// depends on kernels, model, sampler and training mathematics alone, and is written
// down here for each class of numerics. It proves nothing about speed (package
// bench), memory or long runs.
package selftest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math"
	"strings"

	"exp/experiments/ident"
	"exp/harness/plan"
	"exp/kernels"
	"exp/train"
	"exp/train/generate"
	"exp/train/model"
	"exp/train/optim"
	"exp/train/rl"
	"exp/train/rollout"
)

// Want returns the digest that Train must give in a class of numerics; ok is false
// for a class of which none is known. A change of the engine that changes no bit
// does not change it; one that does is a change of every result.
func Want(numerics string) (digest string, ok bool) {
	digest, ok = map[string]string{
		"cpu/fma":  "8a1a08d97953470d05f5359039578a3e7ad546b668bd42edc4156926daccfaa1",
		"cpu/bf16": "915b5628393a78e55a443f7072cfb2a045921f056b31c625a0ade11ff452adde",
	}[numerics]
	return digest, ok
}

// Numerics is the class that a backend computes in, in this program.
func Numerics(be kernels.Backend) string { return plan.Numerics(be.Class()) }

// toy is a model with every part that a pretrained one may have. Its dimensions are
// no multiples of a vector's length, so that the ends of rows are computed too.
func toy() model.Config {
	return model.Config{Vocab: 19, Layers: 2, Width: 52, Heads: 4, KVHeads: 2, Head: 14, FFN: 70,
		RopeTheta: 1000, NormEps: 1e-5, QKVBias: true, QKNorm: true, MaxPositions: 64, InitStd: 0.2}
}

// config is a training of three steps with two updates each.
func config() train.Config {
	return train.Config{
		Loss: "flowrl", Settings: rl.Defaults("", "flowrl").With(rl.FlowBeta, 2.0),
		PromptsPerStep: 4, PromptsPerUpdate: 2, Samples: 4, Steps: 3, Epochs: 1, Shuffled: true,
		MaxPromptTokens: 18, Sampling: rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 16},
		MicroBatchTokens: 80,
		Policy: train.Optim{LR: 3e-3, Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, WeightDecay: 0.01, GradClip: 1,
			Schedule: optim.Schedule{Kind: optim.Constant}},
		LogZ:       model.LogZConfig{Layers: 3, Dropout: 0.1},
		VerifyRate: 1,
	}
}

// seed names the random streams of the training.
func seed(label string) uint64 { return ident.Seed(0, "selftest/"+label) }

// Train trains the toy and returns the digest of all that it sampled, measured and
// learned. A sampler that records other log-probs than the trainer computes is a
// *train.MismatchError.
func Train(ctx context.Context, be kernels.Backend) (string, error) {
	cfg := config()
	policy, err := model.New(be, toy(), model.Heads{LM: true, LogZ: &cfg.LogZ}, true)
	if err != nil {
		return "", err
	}
	defer policy.Close()
	policy.Init(seed)
	reference, err := model.New(be, toy(), model.Heads{LM: true}, false)
	if err != nil {
		return "", err
	}
	defer reference.Close()
	reference.Init(seed)
	engine, err := generate.New(be, policy, letters{}, generate.Options{MaxSequences: 8, PageTokens: 16, MaxTokens: 64,
		StepRows: 24})
	if err != nil {
		return "", err
	}
	defer engine.Close()
	sum := &digest{sha256.New()}
	trainer, err := train.New(cfg, train.Parts{
		Backend: be, Policy: policy, Reference: reference, Sampler: engine, Grader: vowels{}, Prompt: encode,
		Problems: problems(), Seed: seed, Recorder: sum,
	})
	if err != nil {
		return "", err
	}
	defer trainer.Close()
	if err := trainer.Run(ctx, nil); err != nil {
		return "", err
	}
	params := make([]float32, policy.Params().Len())
	be.Copy(kernels.Host(params), policy.Params())
	be.Sync()
	sum.put(params)
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// digest hashes the steps of a training.
type digest struct{ hash.Hash }

// put hashes numbers by their bits.
func (d *digest) put(v any) {
	if err := binary.Write(d, binary.LittleEndian, v); err != nil {
		panic("selftest: " + err.Error()) // a hash takes everything, numbers have a size
	}
}

// Step makes digest a train.Recorder.
func (d *digest) Step(s *train.Step) error {
	for _, t := range s.Trajectories {
		d.put(t.Completion.Tokens)
		d.put(t.Completion.LogProbs)
		d.put(t.Verdict.Reward)
	}
	for _, m := range s.Metrics {
		if strings.HasPrefix(m.Name, "rollout_corr/") {
			continue // of log-probs that are hashed above, against themselves
		}
		d.Write([]byte(m.Name))
		d.put(math.Float64bits(m.Value))
	}
	return nil
}

// The vocabulary: token 0 ends, token i is the i-th letter.
type letters struct{}

// Piece returns the letter of a token.
func (letters) Piece(id int32) []byte {
	if id == 0 {
		return nil
	}
	return []byte{byte('A' + id - 1)}
}

// EndIDs returns the token that ends a completion.
func (letters) EndIDs() []int32 { return []int32{0} }

func encode(p *rollout.Problem) ([]int32, error) {
	ids := make([]int32, len(p.Prompt))
	for i := range ids {
		ids[i] = int32(p.Prompt[i]-'A') + 1
	}
	return ids, nil
}

// problems are prompts of unlike lengths.
func problems() []rollout.Problem {
	var list []rollout.Problem
	for _, prompt := range []string{"A", "BEAD", "CABBAGE", "DEFACEDEFACED", "FADEDFACADEBAGGAGE", "HIGHHEEL",
		"KID", "LIMO"} {
		list = append(list, rollout.Problem{ID: prompt, Prompt: prompt})
	}
	return list
}

// vowels rewards a completion by its share of vowels.
type vowels struct{}

// Grade implements rollout.Grader.
func (vowels) Grade(_ context.Context, _ *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	n := 0
	for _, r := range c.Text {
		if strings.ContainsRune("AEIO", r) {
			n++
		}
	}
	return rollout.Verdict{Status: rollout.Graded, Reward: float64(n) / float64(max(1, len(c.Text)))}, nil
}
