package toolcall

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Syntaxes of calls in whole answers, besides Hermes, and the models that write them.
const (
	Llama3     = "llama3"      // Llama 3.1 to 3.3
	Mistral    = "mistral"     // Mistral's
	Qwen3Coder = "qwen3-coder" // Qwen3-Coder, Qwen3.5
	GLM        = "glm"         // GLM-4.5 and later
	Harmony    = "harmony"     // gpt-oss
	DeepSeek   = "deepseek"    // DeepSeek-V3, R1 and V3.1
	MiniMax    = "minimax"     // MiniMax-M2
	LFM2       = "lfm2"        // LFM2, LFM2.5
	Olmo3      = "olmo3"       // Olmo 3
	Granite    = "granite"     // Granite 3.1 to 3.3
)

// Syntaxes returns the names that SyntaxNamed knows.
func Syntaxes() []string {
	return []string{Hermes, Llama3, Mistral, Qwen3Coder, GLM, Harmony, DeepSeek, MiniMax, LFM2, Olmo3, Granite}
}

// Syntax is how a model writes calls in an answer: what its chat template writes for tool_calls. A Reader reads it.
type Syntax struct {
	Name string
	// Marks are parts of it that are special tokens of some tokenizers, which completions leave out.
	Marks []string
	// Channels says that all of an answer is in messages of channels, also one that calls nothing.
	Channels bool
	opens    []string // texts that begin a call
	bare     bool     // so does "{", where nothing else has been said
	read     func(tools definitions, text string, whole bool) attempt
}

// attempt says what a text begins with, where one of Syntax.opens has been found: its first n bytes are calls, or
// plain text if calls is empty. n is 0 if that depends on text that has not come; whole tells read that none will.
type attempt struct {
	calls []Call
	n     int
}

// SyntaxNamed returns the syntax with a name:
//
//	hermes        <tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>
//	llama3        {"name": "f", "parameters": {"x": 1}}     alone, after <|python_tag|> too; several with ";" between
//	mistral       [TOOL_CALLS][{"name": "f", "arguments": {"x": 1}}]     or, since 2025, [TOOL_CALLS]f[ARGS]{"x": 1}
//	qwen3-coder   <tool_call><function=f><parameter=x>1</parameter></function></tool_call>
//	glm           <tool_call>f<arg_key>x</arg_key><arg_value>1</arg_value></tool_call>
//	harmony       <|channel|>commentary to=functions.f <|constrain|>json<|message|>{"x": 1}<|call|>
//	deepseek      <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"x": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>
//	minimax       <minimax:tool_call><invoke name="f"><parameter name="x">1</parameter></invoke></minimax:tool_call>
//	lfm2          <|tool_call_start|>[f(x=1)]<|tool_call_end|>
//	olmo3         <function_calls>f(x=1)</function_calls>     several in lines of their own
//	granite       <|tool_call|>[{"name": "f", "arguments": {"x": 1}}]
func SyntaxNamed(name string) (Syntax, error) {
	const open, tag, mark = "<tool_call>", "<|python_tag|>", "[TOOL_CALLS]"
	switch name {
	case Hermes:
		f, err := Named(Hermes, [2]string{}, [2]string{})
		return f.syntax(), err
	case Llama3:
		return Syntax{Name: name, Marks: []string{tag}, opens: []string{tag}, bare: true,
			read: func(_ definitions, text string, _ bool) attempt { return readLlama(text, tag) }}, nil
	case Mistral:
		return Syntax{Name: name, Marks: []string{mark, mistralID, mistralArgs}, opens: []string{mark},
			read: func(_ definitions, text string, _ bool) attempt { return readMistral(text, mark) }}, nil
	case Qwen3Coder:
		return Syntax{Name: name, Marks: []string{open, "</tool_call>"}, opens: []string{open, functionOpen},
			read: func(tools definitions, text string, whole bool) attempt {
				return tools.readQwen(text, open, "</tool_call>", whole)
			}}, nil
	case GLM:
		return glm(), nil
	case Harmony:
		return harmony(), nil
	case DeepSeek:
		return deepSeek(), nil
	case MiniMax:
		return miniMax(), nil
	case LFM2:
		return pythonic(name, lfmOpen, lfmClose, true), nil
	case Olmo3:
		return pythonic(name, olmoOpen, olmoClose, false), nil
	case Granite:
		return granite(), nil
	}
	return Syntax{}, fmt.Errorf("unknown syntax of tool calls %q", name)
}

// SyntaxOf finds the syntax that a chat template writes. ok is false if it writes none, or one that is not known here.
func SyntaxOf(template string) (s Syntax, ok bool) {
	has := func(texts ...string) bool {
		return !slices.ContainsFunc(texts, func(t string) bool { return !strings.Contains(template, t) })
	}
	name := ""
	switch {
	case has(keyOpen, valueOpen):
		name = GLM
	case has(channelMark, messageMark, functions):
		name = Harmony
	case has(callsBegin, oneSep):
		name = DeepSeek
	case has(miniMaxOpen, invokeOpen):
		name = MiniMax
	case has(lfmOpen), has("<|tool_list_start|>"): // LFM2's first template writes the tools alone
		name = LFM2
	case has(olmoOpen, olmoClose) && !has("<invoke"):
		name = Olmo3
	case has(graniteOpen, "JSON list"): // in the message that tells the model of tools
		name = Granite
	case has(functionOpen, parameterOpen):
		name = Qwen3Coder
	case has("[TOOL_CALLS]"):
		name = Mistral
	case has("<tool_call>", `"name"`, `"arguments"`):
		name = Hermes
	case has("ipython", `"name"`, `"parameters"`):
		name = Llama3
	}
	s, err := SyntaxNamed(name)
	return s, err == nil
}

// syntax returns the syntax of JSON between tags.
func (f Format) syntax() Syntax {
	return Syntax{Name: Hermes, Marks: []string{f.Open, f.Close}, opens: []string{f.Open},
		read: func(_ definitions, text string, whole bool) attempt {
			inner, after, closed := cutValue(text[len(f.Open):], f.Close, whole)
			if !closed {
				return attempt{}
			}
			out := attempt{n: len(text) - len(after)}
			if c := jsonCall(inner); c.wrong == "" && isObject(c.arguments) {
				out.calls = []Call{{c.name, c.arguments}}
			}
			return out
		}}
}

func isObject(raw json.RawMessage) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal(raw, &m) == nil && m != nil
}

// errMore says that a value goes on beyond a text.
var errMore = errors.New("toolcall: the value is not complete")

// value returns the JSON value that begins a text, and its length with the white space before it.
func value(text string) (raw json.RawMessage, n int, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	if err = d.Decode(&raw); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errMore
	}
	return raw, int(d.InputOffset()), err
}

// cutValue cuts a text at the first mark behind the JSON value that begins it, where no mark within the value counts;
// at the first mark of all if no value begins it. ok is false if more text may bring the mark; whole says that none
// will come.
func cutValue(text, mark string, whole bool) (before, after string, ok bool) {
	_, n, err := value(text)
	switch {
	case err == errMore && !whole:
		return "", "", false
	case err != nil:
		n = 0
	}
	inner, after, ok := strings.Cut(text[n:], mark)
	return text[:n+len(inner)], after, ok
}

// readLlama reads {"name": …, "parameters": {…}}, with or without a tag before it.
func readLlama(text, tag string) attempt {
	rest, tagged := strings.CutPrefix(text, tag)
	raw, n, err := value(rest)
	var c struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
		Arguments  json.RawMessage `json:"arguments"`
	}
	switch {
	case err == errMore:
		return attempt{}
	case err == nil && json.Unmarshal(raw, &c) == nil && c.Name != "":
		if len(c.Parameters) == 0 {
			c.Parameters = c.Arguments
		}
		if args := unquoted(c.Parameters); isObject(args) {
			return attempt{[]Call{{c.Name, args}}, len(text) - len(rest) + n}
		}
	}
	if tagged {
		return attempt{n: len(tag)}
	}
	return attempt{n: 1}
}

// Texts within Mistral's calls since version 11 of its tokenizers, before a call's id and before its arguments.
const (
	mistralID   = "[CALL_ID]"
	mistralArgs = "[ARGS]"
)

// readMistral reads a list of calls, or a call, or a name with arguments, after a mark.
func readMistral(text, mark string) attempt {
	no := attempt{n: len(mark)}
	rest := strings.TrimLeft(text[len(mark):], " \n")
	if strings.HasPrefix(rest, "[") || strings.HasPrefix(rest, "{") {
		calls, after, err := callList(rest)
		switch {
		case err == errMore:
			return attempt{}
		case err != nil:
			return no
		}
		return attempt{calls, len(text) - len(after)}
	}
	end := strings.IndexAny(rest, "[{")
	if end < 0 {
		end = len(rest)
	}
	name, after := strings.TrimRight(rest[:end], " \n"), rest[end:]
	if strings.IndexFunc(name, func(c rune) bool { return !nameRune(c) }) >= 0 || name == "" && after != "" {
		return no
	}
	if id, ok := strings.CutPrefix(after, mistralID); ok {
		if _, after, ok = strings.Cut(id, mistralArgs); !ok {
			return attempt{}
		}
	} else if args, ok := strings.CutPrefix(after, mistralArgs); ok {
		after = args
	} else if strings.HasPrefix(mistralID, after) || strings.HasPrefix(mistralArgs, after) {
		return attempt{} // also where the name goes on
	}
	raw, n, err := value(after)
	switch {
	case err == errMore:
		return attempt{}
	case err != nil || !isObject(raw):
		return no
	}
	return attempt{[]Call{{name, raw}}, len(text) - len(after) + n}
}

// errNoCalls says that a JSON value is something else.
var errNoCalls = errors.New("toolcall: no calls")

// callList reads the list of calls in JSON, or the call, that begins a text, and returns what follows it. The error is
// errMore if it goes on beyond the text.
func callList(text string) (calls []Call, after string, err error) {
	raw, n, err := value(text)
	if err != nil {
		return nil, "", err
	}
	list := []json.RawMessage{raw}
	if raw[0] == '[' && json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return nil, "", errNoCalls
	}
	for _, one := range list {
		c := jsonCall(string(one))
		if c.wrong != "" || !isObject(c.arguments) {
			return nil, "", errNoCalls
		}
		calls = append(calls, Call{c.name, c.arguments})
	}
	return calls, text[n:], nil
}

// nameRune reports whether a function's name may have a character, as OpenAI's API allows, and dots.
func nameRune(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_-.", c)
}
