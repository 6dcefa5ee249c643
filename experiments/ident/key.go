package ident

// Experiment is what an experiment id stands for: everything that is tried,
// whatever the seed.
type Experiment struct {
	// Config holds the resolved semantic keys that prepare, init, sft, train and
	// merge read, without the run's seed and without evaluation keys.
	Config map[string]any
	// Data holds the digest of each data source from outside, by its use
	// ("train"); generated data are a function of Config and Code.
	Data map[string]Digest
	// Weights is the digest of initial weights from outside; zero where they are
	// made from Config.
	Weights Digest
	// Tokenizer is the digest of the tokenizer's files or definition.
	Tokenizer Digest
	// Code holds the digest of the sources of each of these stages, by kind.
	Code map[string]Digest
}

// XID is the experiment id, H("exp/experiment/1", …). The error is an
// *EncodeError of Config.
func (e Experiment) XID() (Digest, error) {
	return Hash("exp/experiment/1", map[string]any{
		"config": e.Config, "data": e.Data, "weights": orNull(e.Weights),
		"tokenizer": orNull(e.Tokenizer), "code": e.Code,
	})
}

// RID is the run id H("exp/run/1", {xid, seed, numerics}): one trajectory.
// numerics names the class of machines within which bits agree ("cpu/fma"). It
// panics if numerics is not UTF-8.
func RID(xid Digest, seed int64, numerics string) Digest {
	return mustHash("exp/run/1", map[string]any{"xid": xid, "seed": seed, "numerics": numerics})
}

// Stage is what a stage id stands for: all that can change a bit of the stage's
// outputs.
type Stage struct {
	Kind   string            // "train"
	Params map[string]any    // the semantic keys that the kind reads
	Inputs map[string]Digest // by role ("weights", "problems")
	Code   Digest            // of the kind's sources
	// Seed says which random streams the stage draws from, root and label, for
	// example "seed=3" or "model.seed=0"; empty if it draws none.
	Seed string
	// Numerics is the class of the machine; empty for a stage whose outputs are
	// the same everywhere (text, integers).
	Numerics string
}

// SID is the stage id, H("exp/stage/1", …), the unit of caching. The error is an
// *EncodeError.
func (s Stage) SID() (Digest, error) {
	return Hash("exp/stage/1", map[string]any{
		"kind": s.Kind, "params": s.Params, "inputs": s.Inputs, "code": orNull(s.Code),
		"seed": s.Seed, "numerics": s.Numerics,
	})
}

// orNull is d for Hash, null for none.
func orNull(d Digest) any {
	if d.IsZero() {
		return nil
	}
	return d
}
