package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"exp/train/rollout"
)

// told returns acts as tokens, rewards and the states' letters in the order in which they first come.
func told(c *rollout.Completion) string {
	var b strings.Builder
	letters := map[string]byte{}
	for _, a := range c.Acts {
		if letters[a.State] == 0 {
			letters[a.State] = byte('a' + len(letters))
		}
		fmt.Fprintf(&b, "%s[%d:%d %g %c]", a.Conversation, a.Start, a.End, a.Reward, letters[a.State])
	}
	return b.String()
}

// A program's reports of turns go to the turns, in their order, and the score is the sum of the rewards unless it
// gives one. The policy says "yes" and "no", each with an end token, and 12 tokens are inserted before "no".
func TestTurnsOfProgram(t *testing.T) {
	o := options()
	a := New(o)
	o.States = true
	always := New(o)
	const not, graded = "not graded false 0 the agent ", " as the agent says"
	for _, c := range []struct{ prompt, acts, said string }{
		{`ask ask say:"score":1`, "", "graded true 1" + graded},
		{`ask ask say:"turns":[{"reward":0.5},{"reward":-0.25}]`, "[0:4 0.5 a][16:19 -0.25 b]", "graded false 0.25" + graded},
		{`ask ask say:"turns":[{"reward":0.5},{"reward":0.5}]`, "[0:4 0.5 a][16:19 0.5 b]", "graded true 1" + graded},
		{`ask ask say:"turns":[{"reward":0.5},{"reward":0.5}],"correct":false`, "[0:4 0.5 a][16:19 0.5 b]", "graded false 1" + graded},
		{`ask ask say:"score":3,"turns":[{"reward":-0.0},{"reward":0.25}]`, "[0:4 0 a][16:19 0.25 b]", "graded true 3" + graded},
		{`ask ask say:"turns":[{"state":"x"},{"state":"x"}]`, "[0:4 0 a][16:19 0 a]", "<nil>"},
		{`ask ask say:"turns":[{"state":""},{}],"score":0`, "[0:4 0 a][16:19 0 b]", "graded false 0" + graded},
		{`ask ask say:"turns":null,"score":0`, "", "graded false 0" + graded},
		{`ask ask say:"turns":[{"reward":1}]`, "", not + `says what 1 turns earned, where the policy answered 2 requests: "turns" has one entry for each answer, in their order`},
		{`ask say:"turns":[{"reward":1},{}],"score":1`, "", not + "says what 2 turns earned, where the policy answered 1 requests"},
		{`ask say:"turns":[]`, "", not + "says what 0 turns earned, where the policy answered 1 requests"},
		{`ask say:"turns":[{"reward":1e39}]`, "", not + "says that turn 1 earned 1e+39, not a finite float32"},
		{`ask say:"turns":[{"conversation":"x"}]`, "", not + `says what a turn earned in the conversation "x", where the policy answered nothing`},
		{`ask say:"turns":[{"reward":1}],"error":"down"`, "", not[:len(not)-1] + ": down"},
	} {
		for _, player := range []*Agent{a, always} {
			got, err := player.Play(context.Background(), episodeOf(&policy{says: []string{"yes", "no"}}, c.prompt, ""))
			if err != nil {
				t.Errorf("%s: %v", c.prompt, err)
				continue
			}
			said, acts := "<nil>", c.acts
			if v := got.AgentVerdict; v != nil {
				said = fmt.Sprintf("%v %v %v %s", v.Status, v.Correct, v.Reward, v.Reason)
			}
			if player == always && acts == "" && !strings.HasPrefix(said, "not") {
				acts = "[0:4 0 a][16:19 0 b]"
			}
			if told(&got) != acts || !strings.HasPrefix(said, c.said) || got.Check() != nil {
				t.Errorf("%s: %s, %s, %v; want %s, %s", c.prompt, told(&got), said, got.Check(), acts, c.said)
			}
		}
	}
	for prompt, want := range map[string]string{`ask say:"turns":[{}],"correct":true`: `has "correct" without "score"`,
		`ask say:"turns":[{"reward":"much"}]`: "does not end an episode as", `ask say:"turns":{}`: "does not end an episode as"} {
		_, err := a.Play(context.Background(), episodeOf(&policy{says: []string{"yes"}}, prompt, ""))
		var broken *BrokenError
		if !errors.As(err, &broken) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", prompt, err, want)
		}
	}
	if err := errors.Join(a.Close(), always.Close()); err != nil {
		t.Error(err)
	}
}

// Without the program's word a state is what the request adds, whatever was said before: roles and texts of chats, or
// text. Turns of conversations that gave way to others have no tokens.
func TestStates(t *testing.T) {
	o := options()
	o.Conversations = Last
	x := playedBy(t, o, &policy{says: []string{"one", "two"}})
	for _, messages := range [][]string{{user("a")}, {user("a"), repeat("one"), user("b")}, {user("a"), user("x")},
		{user("a"), user("x"), repeat("one"), `{"role": "user", "content": "b", "name": "n"}`}} {
		if got, why := x.chat("", messages...); why != "stop" {
			t.Fatalf("%s, %s", got, why)
		}
	}
	c := x.end()
	if got, want := told(&c), "[0:0 0 a][0:0 0 b][0:4 0 c][15:19 0 b]"; got != want || c.Check() != nil {
		t.Errorf("%s, %v; want %s", got, c.Check(), want)
	}
}

// Turns stand in the order in which they were answered, whichever conversation goes on, then by name. What the program
// says of a name goes to that name's turns, wherever its entries stand.
func TestTurnsOfNames(t *testing.T) {
	o := manyNames()
	o.MaxTurns = 4
	x := namedBy(t, o, nil)
	b := x.say("b", "s")
	first := x.say("", "p")
	second := x.say("", "q")
	x.say("9", "s")
	x.say("", first+"!")
	x.say("b", b+"?")
	x.say("", second+"!")
	c := x.end()
	if err := c.Check(); err != nil || len(c.Acts) != 7 {
		t.Fatalf("%v, %+v", err, c.Acts)
	}
	for i, name := range []string{"", "", "", "", "9", "b", "b"} {
		if c.Acts[i].Conversation != name || i > 0 && i != 2 && c.Acts[i].Start <= c.Acts[i-1].Start {
			t.Errorf("turn %d is %+v", i, c.Acts[i])
		}
	}
	if s := c.Acts; s[2].State != s[3].State || s[4].State != s[5].State || s[0].State == s[1].State {
		t.Errorf("states %+v", s)
	}
	say := func(reward float64, name string) earning {
		return earning{Reward: &reward, Conversation: []byte(name)}
	}
	all := []earning{say(1, `"b"`), say(2, ""), say(3, "9"), say(4, `"b"`), say(5, `""`), say(6, "null"), say(7, "")}
	if err := earn(c.Acts, all); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{2, 5, 6, 7, 3, 1, 4} {
		if c.Acts[i].Reward != want {
			t.Errorf("turn %d earned %v, want %v", i, c.Acts[i].Reward, want)
		}
	}
	for want, list := range map[string][]earning{
		`says what 1 turns earned in the conversation "b", where the policy answered 2 requests`:        all[1:],
		`says what 2 turns earned in the conversation "9", where the policy answered 1 requests`:        append(all, say(0, `"9"`)),
		"says what 3 turns earned outside of named conversations, where the policy answered 4 requests": all[:6],
		`says what a turn earned in the conversation "c", where the policy answered nothing`:            append(all, say(0, `"c"`)),
		`says that turn 2 in the conversation "b" earned -1e+40, not a finite float32`:                  {all[0], say(-1e40, `"b"`)},
	} {
		if err := earn(c.Acts, list); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
