package stage

import (
	"encoding/json"
	"fmt"
	"math"

	"exp/eval"
	"exp/eval/task"
	"exp/harness/dataset"
	"exp/harness/prompt"
	"exp/kernels"
	"exp/train/model"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// OutcomeProb is one completion of an enumerable task and its exact log-probs.
type OutcomeProb struct {
	Text       string  `json:"text"`
	Reward     float64 `json:"reward"`
	LogProb    float64 `json:"logprob"`           // under the policy
	RefLogProb float64 `json:"reference_logprob"` // under the weights that training started from
	// Target is the probability under the optimum, proportional to
	// reference·exp(beta·reward); set by Target.
	Target float64 `json:"target,omitempty"`
}

// exactPolicy computes the probability of every completion of an enumerable task; nil for other
// tasks and for an unknown reference.
func (e *Env) exactPolicy(in Inputs, m *model.Model, prompts *prompt.Prompter,
	problems []rollout.Problem) ([]OutcomeProb, error) {
	t, err := task.New(dataset.TaskConfig(e.run()))
	if err != nil {
		return nil, err
	}
	enum, ok := t.(task.Enumerable)
	if _, known := in[RoleReference]; !ok || !known || len(problems) == 0 {
		return nil, nil
	}
	ref, err := e.loadModel(in, RoleReference, model.Heads{LM: true}, false)
	if err != nil {
		return nil, err
	}
	defer ref.Close()
	prompt, err := prompts.Encode(&problems[0])
	if err != nil {
		return nil, err
	}
	tok := prompts.Vocabulary()
	var out []OutcomeProb
	var tokens []int32
	for _, o := range enum.Enumerate() {
		ids, err := tok.Encode(o.Text, tokenizer.Options{})
		if err != nil {
			return nil, err
		}
		if len(ids) == 0 {
			ids = tok.EndIDs()[:min(1, len(tok.EndIDs()))]
		}
		if len(ids) != 1 {
			return nil, fmt.Errorf("outcome %q is %d tokens, not one", o.Text, len(ids))
		}
		tokens = append(tokens, ids[0])
		out = append(out, OutcomeProb{Text: o.Text, Reward: o.Reward})
	}
	lp, err := e.nextLogProbs(m, prompt, tokens)
	if err != nil {
		return nil, err
	}
	rp, err := e.nextLogProbs(ref, prompt, tokens)
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].LogProb, out[i].RefLogProb = lp[i], rp[i]
	}
	return out, nil
}

// nextLogProbs returns m's log-probs of each token after the prompt.
func (e *Env) nextLogProbs(m *model.Model, prompt, tokens []int32) ([]float64, error) {
	b := model.Batch{Offsets: []int32{0}}
	for _, id := range tokens {
		b.Tokens = append(append(b.Tokens, prompt...), id)
		b.Offsets = append(b.Offsets, int32(len(b.Tokens)))
		b.Prompt, b.Group = append(b.Prompt, int32(len(prompt))), append(b.Group, 0)
	}
	ws, err := model.NewWorkspace(e.Backend, m.Config, m.Heads,
		model.Capacity{Tokens: len(b.Tokens), Sequences: len(tokens)}, model.KeepNothing)
	if err != nil {
		return nil, err
	}
	defer ws.Close()
	ws.Load(b)
	m.Forward(ws)
	m.Scores(ws, 1)
	lp := make([]float64, len(tokens))
	e.Backend.Copy(kernels.Host(lp), ws.LogProb())
	e.Backend.Sync()
	return lp, nil
}

// Target fills in the optimum of max β·E[r] - KL(π‖π_ref), which FlowRL balances
// towards: target ∝ reference·exp(beta·reward), over all completions.
func Target(p []OutcomeProb, beta float64) {
	most := math.Inf(-1)
	for _, o := range p {
		most = max(most, o.RefLogProb+beta*o.Reward)
	}
	var z float64
	for i, o := range p {
		p[i].Target = math.Exp(o.RefLogProb + beta*o.Reward - most)
		z += p[i].Target
	}
	for i := range p {
		p[i].Target /= z
	}
}

// exactMetrics compares the exact policy with the optimum:
//
//	kl_target      KL(target‖π), nats: 0 where the optimum was reached
//	kl_reference   KL(π‖π_ref), nats
//	policy_entropy entropy of π, nats
func (e *Env) exactMetrics(in Inputs) ([]eval.Metric, error) {
	b, err := e.input(in, RolePolicy)
	if err != nil {
		return nil, err
	}
	var p []OutcomeProb
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, err
	}
	Target(p, e.run().Task.Outcomes.Beta)
	var klTarget, klRef, entropy float64
	for _, o := range p {
		if o.Target > 0 {
			klTarget += o.Target * (math.Log(o.Target) - o.LogProb)
		}
		q := math.Exp(o.LogProb)
		klRef += q * (o.LogProb - o.RefLogProb)
		entropy -= q * o.LogProb
	}
	one := func(name string, v float64) eval.Metric { return eval.Metric{Name: name, Value: v, N: 1, Clusters: 1} }
	return []eval.Metric{one("kl_target", klTarget), one("kl_reference", klRef), one("policy_entropy", entropy)}, nil
}
