package ident

// Experiment holds everything that identifies an experiment, except the seed.
type Experiment struct {
	// Config holds the resolved semantic keys that prepare, init, sft, train and
	// merge read, without the run's seed and without evaluation keys.
	Config map[string]any
	// Data holds the digest of each external data source, by use ("train"); generated
	// data are a function of Config and Code.
	Data map[string]Digest
	// Weights is the digest of external initial weights; zero if Config determines them.
	Weights Digest
	// Tokenizer is the digest of the tokenizer's files or definition.
	Tokenizer Digest
	// Code holds the digest of the sources of each of these stages, by kind.
	Code map[string]Digest
}

// XID returns the experiment id, H("exp/experiment/1", …). The error is an *EncodeError
// about Config.
func (e Experiment) XID() (Digest, error) {
	return Hash("exp/experiment/1", map[string]any{
		"config": e.Config, "data": e.Data, "weights": orNull(e.Weights),
		"tokenizer": orNull(e.Tokenizer), "code": e.Code,
	})
}

// RID returns the run id H("exp/run/1", {xid, seed, numerics}), which identifies one
// trajectory. numerics names a class of machines that compute equal bits ("cpu/fma"). RID
// panics if numerics is not UTF-8.
func RID(xid Digest, seed int64, numerics string) Digest {
	return mustHash("exp/run/1", map[string]any{"xid": xid, "seed": seed, "numerics": numerics})
}

// Stage holds everything that can change a bit of a stage's outputs.
type Stage struct {
	Kind   string            // "train"
	Params map[string]any    // the semantic keys that the kind reads
	Inputs map[string]Digest // by role ("weights", "problems")
	Code   Digest            // of the kind's sources
	// Seed names the random streams that the stage draws from, root and label, for
	// example "seed=3" or "model.seed=0"; empty if none.
	Seed string
	// Numerics is the machine's class; empty for a stage whose outputs are the same on
	// all machines (text, integers).
	Numerics string
}

// SID returns the stage id, H("exp/stage/1", …), the cache key. The error is an
// *EncodeError.
func (s Stage) SID() (Digest, error) {
	return Hash("exp/stage/1", map[string]any{
		"kind": s.Kind, "params": s.Params, "inputs": s.Inputs, "code": orNull(s.Code),
		"seed": s.Seed, "numerics": s.Numerics,
	})
}

// orNull returns d for Hash, null for none.
func orNull(d Digest) any {
	if d.IsZero() {
		return nil
	}
	return d
}
