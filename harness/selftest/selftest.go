// Package selftest checks on this machine what the project promises for every machine:
// a small training run, from sampling to updates, gives the same bits with any
// instruction set and any number of threads, and the log-probs that the sampler records
// equal the trainer's.
//
// It trains FlowRL on a built-in toy. The digest depends only on kernels, model,
// sampler and training mathematics, and is recorded below for each numerics class. The
// package does not test speed (package bench), memory or long runs.
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

// Want returns the digest that Train must give in a numerics class; ok is false if none
// is known for the class. A change of the engine that changes the digest changes every
// result.
func Want(numerics string) (digest string, ok bool) {
	digest, ok = map[string]string{
		"cpu/fma":      "bc7a86efa34e3e5b8253260e7c2e8ce29d836f52db7914352379e819ae5f9a1c",
		"cpu/bf16":     "0d24a35e71adffec2b26d4781c349d0eba9bc192f8e5a271593267d6a83af437",
		"matrix/16x25": "aa0867ca2654fee0557b5f5ee539d5af4d3b6dce509a0402d58cb6ffb6377b4c",
	}[numerics]
	return digest, ok
}

// Numerics returns the numerics class of a backend in this program.
func Numerics(be kernels.Backend) string { return plan.Numerics(be.Class()) }

// toy returns a model with every part that a pretrained one may have. Its dimensions
// are not multiples of a vector's length, so the ends of rows are computed too.
func toy() model.Config {
	return model.Config{Vocab: 19, Layers: 2, Width: 52, Heads: 4, KVHeads: 2, Head: 14, FFN: 70,
		RopeTheta: 1000, NormEps: 1e-5, QKVBias: true, QKNorm: true, MaxPositions: 64, InitStd: 0.2}
}

// config returns the settings of a training run with three steps of two updates each.
func config() train.Config {
	return train.Config{
		Loss: "flowrl", Settings: rl.Defaults("", "flowrl").With(rl.FlowBeta, 2.0),
		PromptsPerStep: 4, PromptsPerUpdate: 2, Samples: 4, Steps: 3, Epochs: 1, Slices: 2, Shuffled: true,
		MaxPromptTokens: 18, Sampling: rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 16},
		MicroBatchTokens: 80,
		Policy: train.Optim{LR: 3e-3, Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, WeightDecay: 0.01, GradClip: 1,
			Schedule: optim.Schedule{Kind: optim.Constant}},
		LogZ:       model.LogZConfig{Layers: 3, Dropout: 0.1},
		VerifyRate: 1,
	}
}

// seed returns the seed of a random stream.
func seed(label string) uint64 { return ident.Seed(0, "selftest/"+label) }

// Train trains the toy and returns the digest of everything sampled, measured and
// learned. It returns a *train.MismatchError if the sampler's log-probs differ from the
// trainer's.
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
	engine, err := generate.New(be, policy, letters{},
		generate.Options{MaxSequences: 8, PageTokens: 16, MaxTokens: 64,
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

// digest hashes the steps of a training run.
type digest struct{ hash.Hash }

// put hashes numbers by their bits.
func (d *digest) put(v any) {
	if err := binary.Write(d, binary.LittleEndian, v); err != nil {
		panic("selftest: " + err.Error()) // a hash takes everything, numbers have a size
	}
}

// Step implements train.Recorder.
func (d *digest) Step(s *train.Step) error {
	for _, t := range s.Trajectories {
		d.put(t.Completion.Tokens)
		d.put(t.Completion.LogProbs)
		d.put(t.Verdict.Reward)
	}
	for _, m := range s.Metrics {
		if strings.HasPrefix(m.Name, "rollout_corr/") {
			continue // compares log-probs that are hashed above with themselves
		}
		d.Write([]byte(m.Name))
		d.put(math.Float64bits(m.Value))
	}
	return nil
}

// letters is the vocabulary: token 0 ends, token i is the i-th letter.
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

// problems returns prompts of different lengths.
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
