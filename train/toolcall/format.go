// Package toolcall lets a policy call tools within a completion: it finds the calls in the policy's turns, asks the
// tool, and writes the answers as the format has them. An Environment is what the sampler sees of it
// (rollout.Environment).
package toolcall

import (
	"encoding/json"
	"fmt"
	"strings"

	"exp/train/rollout"
)

// Format says how a policy writes calls and how answers are written.
type Format struct {
	// Open and Close enclose a call. An empty Open is the beginning of the line, or of the turn.
	Open, Close string
	// JSON: a call is {"name": …, "arguments": {…}} as in Hermes and Qwen, a turn may have several, and it ends
	// with an end token; the chat template writes the answers as messages of the role tool. Else a call is
	// plain text, and the policy goes on within its turn after the answer, between Before and After.
	JSON          bool
	Before, After string
	// Fence: a call is a Markdown block of Python code in place of Open and Close.
	Fence bool
	// User: every turn that ends with an end token is answered, by a message of the role user.
	User bool
}

// Formats by name. Tags has the words of the configuration.
const (
	Hermes = "hermes"
	Fence  = "fence"
	Tags   = "tags"
	User   = "user"
)

// Named returns the format with a name; tags has the call's and the answer's enclosing texts.
func Named(name string, call, answer [2]string) (Format, error) {
	switch name {
	case Hermes:
		return Format{Open: "<tool_call>", Close: "</tool_call>", JSON: true}, nil
	case Fence:
		return Format{Open: "```", Close: "```", Fence: true, Before: "\n```output\n", After: "\n```\n"}, nil
	case Tags:
		return Format{Open: call[0], Close: call[1], Before: answer[0], After: answer[1]}, nil
	case User:
		return Format{User: true}, nil
	}
	return Format{}, fmt.Errorf("unknown format of tool calls %q", name)
}

// chat reports whether answers are messages of the chat template.
func (f Format) chat() bool { return f.JSON || f.User }

// role returns the role of messages with answers.
func (f Format) role() string {
	if f.User {
		return "user"
	}
	return "tool"
}

// marks returns the texts that may end a call within a turn.
func (f Format) marks() []string {
	if f.chat() {
		return nil
	}
	return []string{f.Close}
}

// found is a call, or in wrong the reason against it.
type found struct {
	name      string
	arguments json.RawMessage
	input     string
	wrong     string
}

// calls returns the calls that end a turn.
func (f Format) calls(t rollout.Turn) []found {
	text := t.Text[t.Start:]
	switch ended := t.End >= 0; {
	case f.chat() != ended:
		return nil
	case f.User:
		return []found{{input: text}}
	case f.JSON:
		return f.jsonCalls(AfterThoughts(text))
	case f.Fence:
		if code, ok := lastBlock(text); ok {
			return []found{{input: code}}
		}
		return nil
	}
	// Text after the close belongs to the token that completed it.
	end := strings.LastIndex(text, f.Close)
	if end < 0 {
		return nil
	}
	if f.Open == "" {
		line := text[strings.LastIndexByte(text[:end], '\n')+1 : end]
		if strings.TrimSpace(line) == "" {
			return nil
		}
		return []found{{input: line}}
	}
	start := strings.LastIndex(text[:end], f.Open)
	if start < 0 || f.Open == f.Close && strings.Count(text[:end], f.Open)%2 == 0 {
		return nil
	}
	return []found{{input: text[start+len(f.Open) : end]}}
}

// AfterThoughts returns what follows the thoughts of a turn; nothing if they do not end.
func AfterThoughts(text string) string {
	if at := strings.LastIndex(text, thoughtClose); at >= 0 {
		return text[at+len(thoughtClose):]
	}
	before, _, _ := strings.Cut(text, thoughtOpen)
	return before
}

// Call is a call that a turn makes.
type Call struct {
	Name      string
	Arguments json.RawMessage // an object
}

// jsonCalls returns the calls between the tags in text. It skips a tag that is not closed.
func (f Format) jsonCalls(text string) (list []found) {
	for {
		_, rest, ok := strings.Cut(text, f.Open)
		if !ok {
			return list
		}
		call, after, ok := cutValue(rest, f.Close, true)
		if !ok {
			return list
		}
		list, text = append(list, jsonCall(call)), after
	}
}

func jsonCall(text string) found {
	out := found{input: text}
	var c struct {
		Name      *string         `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil || c.Name == nil || *c.Name == "" {
		out.wrong = `Error: a tool call is a JSON object such as {"name": "…", "arguments": {…}}.`
		return out
	}
	if out.name, out.arguments = *c.Name, unquoted(c.Arguments); len(out.arguments) == 0 {
		out.arguments = json.RawMessage("{}")
	}
	if !json.Valid(out.arguments) {
		out.wrong = "Error: the arguments of the tool call are not JSON."
	}
	return out
}

// unquoted returns arguments as they are meant: OpenAI's calls have them as a text.
func unquoted(arguments json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(arguments, &text) == nil {
		return json.RawMessage(text)
	}
	return arguments
}

// lastBlock returns the code of a Markdown block of Python that ends text.
func lastBlock(text string) (code string, ok bool) {
	lines := strings.Split(strings.TrimRight(text, " \t\r\n"), "\n")
	start, python := -1, false // of the open block
	for i, line := range lines {
		info, fence := strings.CutPrefix(unindented(line), "```")
		info = strings.TrimSpace(info)
		switch {
		case !fence:
		case start < 0:
			start, python = i+1, isPython(info)
		case info == "":
			if i == len(lines)-1 {
				return strings.Join(lines[start:i], "\n"), python
			}
			start = -1
		}
	}
	return "", false
}

// unindented returns a line without up to three spaces, with which a fence may begin.
func unindented(line string) string {
	for range 3 {
		line = strings.TrimPrefix(line, " ")
	}
	return line
}

func isPython(info string) bool {
	name, _, _ := strings.Cut(strings.ToLower(info), " ")
	return name == "python" || name == "py" || name == "python3" || name == "tool_code"
}
