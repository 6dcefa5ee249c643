// Package openai reads requests as OpenAI's API has them, and writes its errors.
package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"

	"exp/train/generate"
	"exp/train/rollout"
)

// Request is what a client asks for.
type Request struct {
	Chat     bool
	Prompts  [][]int32
	Texts    []string // of the prompts, for echo
	Messages []rollout.Message
	Images   []rollout.Picture // with their files: what the messages' ImageParts stand for, in order
	Tools    json.RawMessage   // that the chat offers, a list of definitions; nil: none
	OneCall  bool              // an answer has at most one call
	Wanted   Wanted
	Vars     map[string]any

	// Conversation is metadata.conversation, by which an agent names one; empty: none.
	Conversation string

	Model      string
	Params     rollout.Params
	Most       *int // new tokens; nil: the default
	Fills      bool // where most is nil: as many as fit
	N          int
	Seed       *int64
	Stream     bool
	Usage      bool // at the end of a stream
	Scored     bool
	Top        int
	Echo       bool
	Ends       []int32
	IgnoreEnds bool
}

// Error is an error as OpenAI's API has it.
type Error struct {
	Status  int     `json:"-"`
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func (e *Error) Error() string { return e.Message }

// Bad returns the error for a field.
func Bad(param, format string, args ...any) *Error {
	e := &Error{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Type: "invalid_request_error"}
	if param != "" {
		e.Param = &param
	}
	return e
}

// Coded returns the error with a status and a code.
func Coded(status int, kind, code, format string, args ...any) *Error {
	e := Bad("", format, args...)
	e.Status, e.Type, e.Code = status, kind, &code
	return e
}

// The most that a request may ask for.
const (
	mostChoices = 128
	mostStops   = 16
	mostPrompts = 1024
	mostBiases  = 1024
)

// field reads the value of a field.
type field func(r *Request, raw json.RawMessage) error

// into reads a value of some type.
func into[T any](what string, set func(r *Request, v T) error) field {
	return func(r *Request, raw json.RawMessage) error {
		var v T
		if json.Unmarshal(raw, &v) != nil {
			return fmt.Errorf("must be %s, not %s", what, short(raw))
		}
		return set(r, v)
	}
}

// only accepts the values that change nothing.
func only(why string, values ...string) field {
	return func(_ *Request, raw json.RawMessage) error {
		var b bytes.Buffer
		if json.Compact(&b, raw) == nil && slices.Contains(values, b.String()) {
			return nil
		}
		return fmt.Errorf("%s is not supported: %s; leave it out", short(raw), why)
	}
}

func short(raw []byte) string {
	if len(raw) > 60 {
		return string(bytes.ToValidUTF8(raw[:60], nil)) + "…"
	}
	return string(raw)
}

// number reads a number Within bounds.
func number(lo, hi float64, set func(r *Request, v float64)) field {
	return into("a number", func(r *Request, v float64) error {
		set(r, v)
		return Within(lo, hi, v)
	})
}

// Within returns an error for a number out of bounds.
func Within(lo, hi, v float64) error {
	if !(v >= lo && v <= hi) {
		return fmt.Errorf("is %g, must be %g to %g", v, lo, hi)
	}
	return nil
}

func GoodTemperature(v float64) error {
	if v != 0 && !(v >= 1e-3 && v <= 100) {
		return fmt.Errorf("is %g, must be 0 for the likeliest tokens, or 0.001 to 100", v)
	}
	return nil
}

// MostPenalty bounds presence and frequency penalties, as in OpenAI's API.
const MostPenalty = 2

func GoodRepetition(v float64) error {
	if !(v > 0 && v <= 100) {
		return fmt.Errorf("is %g, must be above 0 and at most 100; 1 is off", v)
	}
	return nil
}

func GoodTopP(v float64) error {
	if !(v > 0 && v <= 1) {
		return fmt.Errorf("is %g, must be above 0 and at most 1", v)
	}
	return nil
}

// whole reads an integer Within bounds.
func whole(lo, hi int64, set func(r *Request, v int)) field {
	return into("an integer", func(r *Request, v int64) error {
		if v < lo || v > hi {
			return fmt.Errorf("is %d, must be %d to %d", v, lo, hi)
		}
		set(r, int(v))
		return nil
	})
}

func truth(set func(r *Request, v bool)) field {
	return into("true or false", func(r *Request, v bool) error { set(r, v); return nil })
}

// MostInt bounds integers that have no limit of their own.
const MostInt = math.MaxInt32

// fields returns the fields of both kinds of requests.
func fields() map[string]field {
	anything := func(*Request, json.RawMessage) error { return nil }
	m := map[string]field{
		"model": into("a text", func(r *Request, v string) error { r.Model = v; return nil }),
		"temperature": into("a number", func(r *Request, v float64) error {
			r.Params.Temperature = v
			return GoodTemperature(v)
		}),
		"top_p": into("a number", func(r *Request, v float64) error {
			r.Params.TopP = v
			return GoodTopP(v)
		}),
		"min_p":      number(0, 1, func(r *Request, v float64) { r.Params.MinP = v }),
		"top_k":      whole(-1, MostInt, func(r *Request, v int) { r.Params.TopK = max(0, v) }),
		"max_tokens": whole(0, MostInt, func(r *Request, v int) { r.Most = &v }),
		"n":          whole(1, mostChoices, func(r *Request, v int) { r.N = v }),
		"seed":       into("an integer", func(r *Request, v int64) error { r.Seed = &v; return nil }),
		"stream":     truth(func(r *Request, v bool) { r.Stream = v }),
		"ignore_eos": truth(func(r *Request, v bool) { r.IgnoreEnds = v }),
		"stop":       readStop,
		"stop_token_ids": into("a list of token ids", func(r *Request, v []int32) error {
			r.Ends = v
			return nil
		}),
		"stream_options": readStreamOptions,
		"user":           anything, "metadata": readMetadata,
		"store": only("nothing is stored", "false"),
		"presence_penalty": number(-MostPenalty, MostPenalty, func(r *Request, v float64) {
			r.Params.Penalties.Presence = v
		}),
		"frequency_penalty": number(-MostPenalty, MostPenalty, func(r *Request, v float64) {
			r.Params.Penalties.Frequency = v
		}),
		"repetition_penalty": into("a number", func(r *Request, v float64) error {
			r.Params.Penalties.Repetition = v
			return GoodRepetition(v)
		}),
		"min_tokens":          whole(0, MostInt, func(r *Request, v int) { r.Params.MinNewTokens = v }),
		"logit_bias":          into("an object of token ids and numbers", readBias),
		"skip_special_tokens": only("special tokens have no text", "true"),
	}
	maps.Copy(m, formFields())
	return m
}

// chatFields and textFields add the fields that only one kind has.
func chatFields(images *Images) map[string]field {
	m := fields()
	m["messages"] = into("a list of messages, objects with role and content",
		func(r *Request, list []rollout.Message) error { return readMessages(r, list, images) })
	m["max_completion_tokens"] = m["max_tokens"]
	m["logprobs"] = truth(func(r *Request, v bool) { r.Scored = v })
	m["top_logprobs"] = whole(0, generate.MostTop, func(r *Request, v int) { r.Top = v })
	m["tools"] = readTools
	m["functions"] = only("functions are tools now", "[]")
	m["tool_choice"] = readToolChoice
	m["parallel_tool_calls"] = truth(func(r *Request, v bool) { r.OneCall = !v })
	m["add_generation_prompt"] = only("the assistant answers", "true")
	m["continue_final_message"] = only("the assistant answers", "false")
	m["chat_template_kwargs"] = into("an object", func(r *Request, v map[string]any) error { r.Vars = v; return nil })
	return m
}

func textFields() map[string]field {
	m := fields()
	m["prompt"] = readPrompt
	m["echo"] = truth(func(r *Request, v bool) { r.Echo = v })
	m["logprobs"] = whole(0, generate.MostTop, func(r *Request, v int) { r.Scored, r.Top = true, v })
	m["best_of"] = only("n completions are sampled and all returned", "1")
	m["suffix"] = only("the endpoint only continues texts", `""`)
	m["add_special_tokens"] = only("prompts begin as in training", "true")
	return m
}

// Read reads the body of a request, which has the parameters of p where it names none. images says which images it may
// show; nil: none.
func Read(body []byte, chat bool, p rollout.Params, images *Images) (*Request, error) {
	r := &Request{Chat: chat, N: 1, Params: p}
	known := textFields()
	if chat {
		known = chatFields(images)
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(body, &given); err != nil {
		return nil, Bad("", "the body must be a JSON object: %v", err)
	}
	for _, name := range sortedNames(given) {
		raw := given[name]
		if string(raw) == "null" {
			continue
		}
		read, ok := known[name]
		switch {
		case ok:
		case name == "messages":
			return nil, Bad(name, "messages are for /v1/chat/completions; a completion continues a prompt")
		case name == "prompt":
			return nil, Bad(name, "a prompt is for /v1/completions; a chat completion answers messages")
		default:
			return nil, Bad(name, "%q is not supported: leave it out", name)
		}
		if err := read(r, raw); err != nil {
			return nil, Bad(name, "%s %v", name, err)
		}
	}
	if string(given["tool_choice"]) == `"none"` {
		r.Tools = nil
	}
	switch {
	case chat && len(r.Messages) == 0:
		return nil, Bad("messages", "messages is missing: at least one is needed")
	case !chat && len(r.Texts)+len(r.Prompts) == 0:
		return nil, Bad("prompt", "prompt is missing")
	case chat && r.Top > 0 && !r.Scored:
		return nil, Bad("top_logprobs", "top_logprobs needs logprobs: true")
	case r.Usage && !r.Stream:
		return nil, Bad("stream_options", "stream_options needs stream: true")
	case r.Most != nil && *r.Most == 0 && !r.Echo:
		return nil, Bad("max_tokens", "max_tokens is 0, must be at least 1, unless a prompt is echoed")
	}
	return r, r.checkWanted()
}

func sortedNames(m map[string]json.RawMessage) []string { return slices.Sorted(maps.Keys(m)) }

// readTools reads the definitions of tools.
func readTools(r *Request, raw json.RawMessage) error {
	var list []struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return fmt.Errorf("must be a list of tools, not %s", short(raw))
	}
	for i, t := range list {
		if t.Type != "function" || t.Function.Name == "" {
			return fmt.Errorf(`[%d]: a tool must be {"type": "function", "function": {"name": …, "parameters": …}}`, i)
		}
	}
	if len(list) > 0 {
		r.Tools = raw
	}
	return nil
}

// readMetadata reads the name of a conversation, a text or other JSON, if there is one; nothing else in metadata means
// anything.
func readMetadata(r *Request, raw json.RawMessage) error {
	var m struct {
		Conversation json.RawMessage `json:"conversation"`
	}
	if json.Unmarshal(raw, &m) == nil {
		r.Conversation = ConversationName(m.Conversation)
	}
	return nil
}

// ConversationName returns the name that a value gives a conversation: its text, or other JSON as it is written; empty
// for no value.
func ConversationName(raw json.RawMessage) (name string) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &name) != nil:
		return string(raw)
	}
	return name
}

func readStop(r *Request, raw json.RawMessage) error {
	var one string
	var list []string
	if json.Unmarshal(raw, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(raw, &list) != nil {
		return fmt.Errorf("must be a text or a list of texts, not %s", short(raw))
	}
	if len(list) > mostStops {
		return fmt.Errorf("has %d texts, at most %d", len(list), mostStops)
	}
	for _, s := range list {
		if s == "" {
			return fmt.Errorf("has an empty text, which would end every answer")
		}
	}
	r.Params.Stop = list
	return nil
}

// mostBias bounds biases and their values, as in OpenAI's API.
const mostBias = 100

func readBias(r *Request, list map[string]float64) error {
	if len(list) > mostBiases {
		return fmt.Errorf("has %d tokens, at most %d", len(list), mostBiases)
	}
	r.Params.Bias = nil
	for _, name := range slices.Sorted(maps.Keys(list)) {
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil || id < 0 || strconv.FormatInt(id, 10) != name {
			return fmt.Errorf("has %q, which is not a token id", name)
		}
		if err := Within(-mostBias, mostBias, list[name]); err != nil {
			return fmt.Errorf("of token %d %w", id, err)
		}
		r.Params.Bias = append(r.Params.Bias, rollout.Bias{Token: int32(id), Add: list[name]})
	}
	return nil
}

func readStreamOptions(r *Request, raw json.RawMessage) error {
	var o map[string]bool
	if json.Unmarshal(raw, &o) != nil {
		return fmt.Errorf(`must be {"include_usage": true}, not %s`, short(raw))
	}
	for name, on := range o {
		if name != "include_usage" && on {
			return fmt.Errorf("has %q, which is not supported", name)
		}
	}
	r.Usage = o["include_usage"]
	return nil
}

// readPrompt reads a text, token ids, or a list of either.
func readPrompt(r *Request, raw json.RawMessage) error {
	var text string
	var ids []int32
	var lists [][]int32
	switch {
	case json.Unmarshal(raw, &text) == nil:
		r.Texts = []string{text}
	case json.Unmarshal(raw, &ids) == nil && len(ids) > 0:
		r.Prompts = [][]int32{ids}
	case json.Unmarshal(raw, &r.Texts) == nil && len(r.Texts) > 0:
	case json.Unmarshal(raw, &lists) == nil && len(lists) > 0:
		r.Texts, r.Prompts = nil, lists
	default:
		return fmt.Errorf("must be a text, a list of token ids, or a list of texts or of such lists, none of them "+
			"empty, not %s", short(raw))
	}
	if n := max(len(r.Texts), len(r.Prompts)); n > mostPrompts {
		return fmt.Errorf("has %d prompts, at most %d", n, mostPrompts)
	}
	return nil
}
