package rollout

import (
	"context"
	"encoding/json"
)

// ToolCall is a call that the policy wrote.
type ToolCall struct {
	Problem *Problem
	Turn    int // that it ends, from 1
	// Name and Arguments are a JSON object's of that form; empty where the format has one tool only.
	Name      string
	Arguments json.RawMessage
	Input     string // the text of the call
	// Response is the completion up to the call, included.
	Response string
}

// ToolAnswer is what a tool says to the policy.
type ToolAnswer struct {
	Text string
	End  bool // the completion ends here; Text is dropped
}

// Tool answers calls. The answer must depend on the call alone, or a run cannot be repeated. It is safe for
// concurrent use.
type Tool interface {
	// Answer returns an error only if the tool itself is broken; what the policy did wrong is an answer.
	Answer(ctx context.Context, call ToolCall) (ToolAnswer, error)
}
