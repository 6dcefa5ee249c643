package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"exp/harness/openai"
	"exp/train/rollout"
)

// turn is a turn of the policy in a strand.
type turn struct {
	talk       int // its conversation; -1: one that is not learned from
	start, end int // its tokens in that conversation
	state      string
}

// turnOf returns the turn that the newest conversation ends with, and that the policy took in a state.
func (x *strand) turnOf(c *rollout.Completion, state string) turn {
	end := len(x.talks[x.final].c.Tokens)
	return turn{talk: x.final, start: end - len(c.Tokens), end: end, state: state}
}

// acts returns the turns of a strand whose conversations begin at a token of the completion.
func (s *strand) acts(at int) []rollout.Act {
	starts := make([]int, len(s.talks))
	for i := range s.talks {
		starts[i] = at
		at += len(s.talks[i].c.Tokens)
	}
	list := make([]rollout.Act, len(s.turns))
	for i, t := range s.turns {
		list[i].State, list[i].Conversation = t.state, s.name
		if t.talk >= 0 {
			list[i].Start, list[i].End = starts[t.talk]+t.start, starts[t.talk]+t.end
		}
	}
	return list
}

// state returns the digest of what the program has said since the policy's last turn, which is what the policy
// observes: the roles and texts of messages, and their images, without the numbers of calls.
func (m *more) state() string {
	if m.messages == nil {
		return stateOf(m.text)
	}
	var observed [][]string
	for _, x := range m.messages {
		observed = append(observed, []string{x.Role, x.Content, string(x.Parts)})
	}
	for i := range m.images {
		observed = append(observed, []string{m.images[i].Digest})
	}
	b, err := json.Marshal(observed)
	if err != nil {
		panic("agent: " + err.Error()) // texts can be written
	}
	return stateOf(string(b))
}

// stateOf returns the digest of a state.
func stateOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// earning is a program's report of a turn.
type earning struct {
	Reward       *float64        `json:"reward"`
	State        *string         `json:"state"`
	Conversation json.RawMessage `json:"conversation"`
}

// earns reports whether the program says what some turn earned.
func (r *result) earns() bool {
	return slices.ContainsFunc(r.Turns, func(e earning) bool { return e.Reward != nil })
}

// earn takes the program's reports of turns, the entries of each conversation's name in the order of its turns. The
// error continues "the agent".
func earn(acts []rollout.Act, said []earning) error {
	of := map[string][]int{"": nil} // the turns with a name
	for i := range acts {
		of[acts[i].Conversation] = append(of[acts[i].Conversation], i)
	}
	given, within := map[string]int{}, func(name string) string {
		switch {
		case name != "":
			return fmt.Sprintf(" in the conversation %q", short(name))
		case len(of) > 1:
			return " outside of named conversations"
		}
		return ""
	}
	for _, e := range said {
		name := openai.ConversationName(e.Conversation)
		n, at := given[name], of[name]
		given[name]++
		if at == nil && name != "" {
			return fmt.Errorf("says what a turn earned%s, where the policy answered nothing", within(name))
		}
		if n >= len(at) {
			continue // too many
		}
		if e.State != nil {
			acts[at[n]].State = stateOf(*e.State)
		}
		if e.Reward != nil {
			if !(math.Abs(*e.Reward) <= math.MaxFloat32) {
				return fmt.Errorf("says that turn %d%s earned %v, not a finite float32", n+1, within(name), *e.Reward)
			}
			acts[at[n]].Reward = *e.Reward + 0 // +0 for -0, which ranks do not send
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if n := len(of[name]); given[name] != n {
			return fmt.Errorf("says what %d turns earned%s, where the policy answered %d requests: \"turns\" has one "+
				"entry for each answer, in their order", given[name], within(name), n)
		}
	}
	return nil
}
