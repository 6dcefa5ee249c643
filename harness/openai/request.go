package endpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"exp/train/generate"
	"exp/train/rollout"
)

// request is what a client asks for.
type request struct {
	chat     bool
	prompts  [][]int32
	texts    []string // of the prompts, for echo
	messages []rollout.Message
	tools    json.RawMessage // that the chat offers, of a problem; clients have none
	vars     map[string]any

	model      string
	params     rollout.Params
	most       *int // new tokens; nil: the default
	fills      bool // where most is nil: as many as fit
	n          int
	seed       *int64
	stream     bool
	usage      bool // at the end of a stream
	scored     bool
	top        int
	echo       bool
	ends       []int32
	ignoreEnds bool
}

// apiError is an error as OpenAI's API has it.
type apiError struct {
	status  int
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func (e *apiError) Error() string { return e.Message }

// bad returns the error for a field.
func bad(param, format string, args ...any) *apiError {
	e := &apiError{status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Type: "invalid_request_error"}
	if param != "" {
		e.Param = &param
	}
	return e
}

// coded returns the error with a status and a code.
func coded(status int, kind, code, format string, args ...any) *apiError {
	e := bad("", format, args...)
	e.status, e.Type, e.Code = status, kind, &code
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
type field func(r *request, raw json.RawMessage) error

// into reads a value of some type.
func into[T any](what string, set func(r *request, v T) error) field {
	return func(r *request, raw json.RawMessage) error {
		var v T
		if json.Unmarshal(raw, &v) != nil {
			return fmt.Errorf("must be %s, not %s", what, short(raw))
		}
		return set(r, v)
	}
}

// only accepts the values that change nothing.
func only(why string, values ...string) field {
	return func(_ *request, raw json.RawMessage) error {
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

// number reads a number within bounds.
func number(lo, hi float64, set func(r *request, v float64)) field {
	return into("a number", func(r *request, v float64) error {
		set(r, v)
		return within(lo, hi, v)
	})
}

// within returns an error for a number out of bounds.
func within(lo, hi, v float64) error {
	if !(v >= lo && v <= hi) {
		return fmt.Errorf("is %g, must be %g to %g", v, lo, hi)
	}
	return nil
}

func goodTemperature(v float64) error {
	if v != 0 && !(v >= 1e-3 && v <= 100) {
		return fmt.Errorf("is %g, must be 0 for the likeliest tokens, or 0.001 to 100", v)
	}
	return nil
}

// mostPenalty bounds presence and frequency penalties, as in OpenAI's API.
const mostPenalty = 2

func goodRepetition(v float64) error {
	if !(v > 0 && v <= 100) {
		return fmt.Errorf("is %g, must be above 0 and at most 100; 1 is off", v)
	}
	return nil
}

func goodTopP(v float64) error {
	if !(v > 0 && v <= 1) {
		return fmt.Errorf("is %g, must be above 0 and at most 1", v)
	}
	return nil
}

// whole reads an integer within bounds.
func whole(lo, hi int64, set func(r *request, v int)) field {
	return into("an integer", func(r *request, v int64) error {
		if v < lo || v > hi {
			return fmt.Errorf("is %d, must be %d to %d", v, lo, hi)
		}
		set(r, int(v))
		return nil
	})
}

func truth(set func(r *request, v bool)) field {
	return into("true or false", func(r *request, v bool) error { set(r, v); return nil })
}

// mostInt bounds integers that have no limit of their own.
const mostInt = math.MaxInt32

// fields returns the fields of both kinds of requests.
func fields() map[string]field {
	anything := func(*request, json.RawMessage) error { return nil }
	return map[string]field{
		"model": into("a text", func(r *request, v string) error { r.model = v; return nil }),
		"temperature": into("a number", func(r *request, v float64) error {
			r.params.Temperature = v
			return goodTemperature(v)
		}),
		"top_p": into("a number", func(r *request, v float64) error {
			r.params.TopP = v
			return goodTopP(v)
		}),
		"min_p":      number(0, 1, func(r *request, v float64) { r.params.MinP = v }),
		"top_k":      whole(-1, mostInt, func(r *request, v int) { r.params.TopK = max(0, v) }),
		"max_tokens": whole(0, mostInt, func(r *request, v int) { r.most = &v }),
		"n":          whole(1, mostChoices, func(r *request, v int) { r.n = v }),
		"seed":       into("an integer", func(r *request, v int64) error { r.seed = &v; return nil }),
		"stream":     truth(func(r *request, v bool) { r.stream = v }),
		"ignore_eos": truth(func(r *request, v bool) { r.ignoreEnds = v }),
		"stop":       readStop,
		"stop_token_ids": into("a list of token ids", func(r *request, v []int32) error {
			r.ends = v
			return nil
		}),
		"stream_options": readStreamOptions,
		"user":           anything, "metadata": anything,
		"store": only("nothing is stored", "false"),
		"presence_penalty": number(-mostPenalty, mostPenalty, func(r *request, v float64) {
			r.params.Penalties.Presence = v
		}),
		"frequency_penalty": number(-mostPenalty, mostPenalty, func(r *request, v float64) {
			r.params.Penalties.Frequency = v
		}),
		"repetition_penalty": into("a number", func(r *request, v float64) error {
			r.params.Penalties.Repetition = v
			return goodRepetition(v)
		}),
		"min_tokens":          whole(0, mostInt, func(r *request, v int) { r.params.MinNewTokens = v }),
		"logit_bias":          into("an object of token ids and numbers", readBias),
		"skip_special_tokens": only("special tokens have no text", "true"),
	}
}

// chatFields and textFields return those of each kind too.
func chatFields() map[string]field {
	const tools = "the endpoint calls no tools"
	m := fields()
	m["messages"] = into("a list of messages, objects with role and content", readMessages)
	m["max_completion_tokens"] = m["max_tokens"]
	m["logprobs"] = truth(func(r *request, v bool) { r.scored = v })
	m["top_logprobs"] = whole(0, generate.MostTop, func(r *request, v int) { r.top = v })
	m["tools"], m["functions"] = only(tools, "[]"), only(tools, "[]")
	m["tool_choice"], m["parallel_tool_calls"] = only(tools, `"none"`, `"auto"`), only(tools, "true", "false")
	m["response_format"] = only("answers are free text", `{"type":"text"}`)
	m["add_generation_prompt"] = only("the assistant answers", "true")
	m["continue_final_message"] = only("the assistant answers", "false")
	m["chat_template_kwargs"] = into("an object", func(r *request, v map[string]any) error { r.vars = v; return nil })
	return m
}

func textFields() map[string]field {
	m := fields()
	m["prompt"] = readPrompt
	m["echo"] = truth(func(r *request, v bool) { r.echo = v })
	m["logprobs"] = whole(0, generate.MostTop, func(r *request, v int) { r.scored, r.top = true, v })
	m["best_of"] = only("n completions are sampled and all returned", "1")
	m["suffix"] = only("the endpoint only continues texts", `""`)
	m["add_special_tokens"] = only("prompts begin as in training", "true")
	return m
}

// readRequest reads the body of a request, which has the parameters of p where it names none.
func readRequest(body []byte, chat bool, p rollout.Params) (*request, error) {
	r := &request{chat: chat, n: 1, params: p}
	known := textFields()
	if chat {
		known = chatFields()
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(body, &given); err != nil {
		return nil, bad("", "the body must be a JSON object: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		raw := given[name]
		if string(raw) == "null" {
			continue
		}
		read, ok := known[name]
		if !ok {
			return nil, bad(name, "%q is not supported: leave it out", name)
		}
		if err := read(r, raw); err != nil {
			return nil, bad(name, "%s %v", name, err)
		}
	}
	switch {
	case chat && len(r.messages) == 0:
		return nil, bad("messages", "messages is missing: at least one is needed")
	case !chat && given["prompt"] == nil:
		return nil, bad("prompt", "prompt is missing")
	case chat && r.top > 0 && !r.scored:
		return nil, bad("top_logprobs", "top_logprobs needs logprobs: true")
	case r.usage && !r.stream:
		return nil, bad("stream_options", "stream_options needs stream: true")
	case r.most != nil && *r.most == 0 && !r.echo:
		return nil, bad("max_tokens", "max_tokens is 0, must be at least 1, unless a prompt is echoed")
	}
	return r, nil
}

func readStop(r *request, raw json.RawMessage) error {
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
	r.params.Stop = list
	return nil
}

// mostBias bounds biases and their values, as in OpenAI's API.
const mostBias = 100

func readBias(r *request, list map[string]float64) error {
	if len(list) > mostBiases {
		return fmt.Errorf("has %d tokens, at most %d", len(list), mostBiases)
	}
	r.params.Bias = nil
	for _, name := range slices.Sorted(maps.Keys(list)) {
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil || id < 0 || strconv.FormatInt(id, 10) != name {
			return fmt.Errorf("has %q, which is no token id", name)
		}
		if err := within(-mostBias, mostBias, list[name]); err != nil {
			return fmt.Errorf("of token %d %w", id, err)
		}
		r.params.Bias = append(r.params.Bias, rollout.Bias{Token: int32(id), Add: list[name]})
	}
	return nil
}

func readStreamOptions(r *request, raw json.RawMessage) error {
	var o map[string]bool
	if json.Unmarshal(raw, &o) != nil {
		return fmt.Errorf(`must be {"include_usage": true}, not %s`, short(raw))
	}
	for name, on := range o {
		if name != "include_usage" && on {
			return fmt.Errorf("has %q, which is not supported", name)
		}
	}
	r.usage = o["include_usage"]
	return nil
}

// readMessages sets the messages of a chat; the texts of a content in parts become one.
func readMessages(r *request, list []rollout.Message) error {
	for i, m := range list {
		if len(m.Parts) == 0 || string(m.Parts) == "null" {
			continue
		}
		var parts []struct {
			Type string  `json:"type"`
			Text *string `json:"text"`
		}
		if json.Unmarshal(m.Parts, &parts) != nil {
			return fmt.Errorf("[%d]: content must be a text, or a list of parts", i)
		}
		var texts []string
		for _, p := range parts {
			if p.Type != "text" || p.Text == nil {
				return fmt.Errorf("[%d]: content has a part of type %q: only text is supported", i, p.Type)
			}
			texts = append(texts, *p.Text)
		}
		list[i].Content, list[i].Parts = strings.Join(texts, "\n"), nil
	}
	r.messages = list
	return nil
}

// readPrompt reads a text, token ids, or a list of either.
func readPrompt(r *request, raw json.RawMessage) error {
	var text string
	var ids []int32
	var lists [][]int32
	switch {
	case json.Unmarshal(raw, &text) == nil:
		r.texts = []string{text}
	case json.Unmarshal(raw, &ids) == nil && len(ids) > 0:
		r.prompts = [][]int32{ids}
	case json.Unmarshal(raw, &r.texts) == nil && len(r.texts) > 0:
	case json.Unmarshal(raw, &lists) == nil && len(lists) > 0:
		r.texts, r.prompts = nil, lists
	default:
		return fmt.Errorf("must be a text, a list of token ids, or a list of texts or of such lists, none of them "+
			"empty, not %s", short(raw))
	}
	if n := max(len(r.texts), len(r.prompts)); n > mostPrompts {
		return fmt.Errorf("has %d prompts, at most %d", n, mostPrompts)
	}
	return nil
}

// defaultTexts is the default of max_tokens for texts that are continued, as in OpenAI's API.
const defaultTexts = 16

// asksFor returns the samplers' requests, one for each prompt.
func (x *Model) asksFor(r *request) (list []*generate.Ask, err error) {
	if err := x.encode(r); err != nil {
		return nil, err
	}
	for _, id := range r.ends {
		if id < 0 || int(id) >= x.vocab {
			return nil, bad("stop_token_ids", "stop_token_ids has %d, the model's tokens are 0 to %d", id, x.vocab-1)
		}
	}
	for _, b := range r.params.Bias {
		if int(b.Token) >= x.vocab {
			return nil, bad("logit_bias", "logit_bias has token %d, the model's are 0 to %d", b.Token, x.vocab-1)
		}
	}
	if r.params.Stop == nil {
		r.params.Stop = x.ends
	}
	name := "prompt"
	if r.chat {
		name = "messages"
	}
	for i, ids := range r.prompts {
		room := x.context - len(ids)
		most := min(defaultTexts, room)
		switch {
		case r.most != nil:
			most = *r.most
		case r.chat || r.fills:
			most = room
		}
		if len(ids) == 0 {
			return nil, bad(name, "%s: prompt %d has no tokens", name, i)
		}
		none := r.most != nil && *r.most == 0 // which needs no room
		if room < most || room < 1 && !none {
			return nil, &LengthError{name, len(ids), max(1, most), x.context}
		}
		a := &generate.Ask{Request: rollout.Request{Prompt: ids, Seeds: seeds(r.seed, r.n)}, Params: r.params,
			Ends: r.ends, IgnoreEnds: r.ignoreEnds, Scored: r.scored, Prompted: r.scored && r.echo, Top: r.top}
		a.MaxNewTokens = max(1, most) // a prompt is scored before a token is drawn
		if a.MinNewTokens > a.MaxNewTokens {
			return nil, bad("min_tokens", "min_tokens is %d, and the answer has at most %d tokens: lower it, or "+
				"raise max_tokens", a.MinNewTokens, a.MaxNewTokens)
		}
		if err := x.engine.Check(a); err != nil {
			return nil, bad(name, "%v", strings.TrimPrefix(err.Error(), "generate: "))
		}
		list = append(list, a)
	}
	return list, nil
}

// LengthError says that a prompt and its answer are too long.
type LengthError struct {
	field                string // of the request
	Prompt, New, Context int    // tokens of the prompt, those asked for, and the most of both
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("%s has %d tokens, and %d are asked for: the endpoint reads at most %d together (exp endpoint "+
		"--context, or the model's positions); ask for less, or shorten %[1]s", e.field, e.Prompt, e.New, e.Context)
}

// encode sets the prompts' tokens.
func (x *Model) encode(r *request) error {
	if !r.chat {
		for i, text := range r.texts {
			ids, err := x.prompts.EncodeText(text)
			if err != nil {
				return bad("prompt", "prompt %d: %v", i, err)
			}
			r.prompts = append(r.prompts, ids)
		}
		return nil
	}
	if !x.prompts.Chats() {
		return bad("messages", "prompts are plain text: the model has no chat template, or its run used none. "+
			"Ask /v1/completions, or give one with --template FILE (--template auto takes the model's own)")
	}
	p := x.prompts
	if r.vars != nil {
		var err error
		if p, err = p.WithVars(r.vars); err != nil {
			return bad("chat_template_kwargs", "chat_template_kwargs: %v", err)
		}
	}
	ids, err := p.EncodeChat(r.messages, r.tools, true)
	if err != nil {
		return bad("messages", "messages: %v", err)
	}
	r.prompts = [][]int32{ids}
	return nil
}
