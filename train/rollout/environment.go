package rollout

import "context"

// Environment writes between the turns of completions: it runs the tools that the policy calls, or answers as
// a user. What it writes for a turn must depend on the turn alone, or a run cannot be repeated. It is safe for
// concurrent use.
type Environment interface {
	// Marks are texts after which the policy may have called a tool, though it has not ended its turn.
	Marks() []string
	// Read is asked where a turn ended or a mark was completed. It must be quick.
	Read(t Turn) Action
}

// Turn is a completion up to where its policy may have called a tool.
type Turn struct {
	Problem *Problem
	Number  int    // of the turn, from 1
	Text    string // of the completion so far, without stop strings
	Start   int    // where the turn's text begins
	// End is the token that ended the turn; -1 after a mark.
	End int32
}

// Action says how a completion continues.
type Action struct {
	// Reply computes what to insert. Nil: nothing; the policy goes on after a mark, and the completion ends after
	// an end token.
	Reply func(ctx context.Context) (Reply, error)
	// Over says that the completion ends here, because it has no turn left.
	Over bool
}

// Reply is what an Environment inserts.
type Reply struct {
	Tokens []int32
	Over   bool // the completion ends instead
}
