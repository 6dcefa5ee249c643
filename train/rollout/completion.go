package rollout

// Finish says why a completion ended.
type Finish uint8

const (
	FinishStop   Finish = 1 + iota // an end token or a stop string was sampled
	FinishLength                   // the token limit was reached
)

func (f Finish) String() string {
	switch f {
	case FinishStop:
		return "stop"
	case FinishLength:
		return "length"
	}
	return "unknown"
}

// Completion is one sample of the policy after a prompt.
type Completion struct {
	// Tokens are the sampled ids, including the end token if one was sampled; [T].
	Tokens []int32
	// LogProbs are the log-probs of Tokens under the policy that sampled them:
	// temperature-scaled full softmax, before top-k or top-p; [T].
	LogProbs []float32
	// Entropies are the entropies of that softmax in nats; [T].
	Entropies []float32
	// Text is Tokens decoded, without the end token and without a stop string.
	Text   string
	Finish Finish
}
