package toolcall

import (
	"encoding/json"
	"strings"
)

// Marks of harmony, the format of gpt-oss (github.com/openai/harmony, docs/format.md). An answer is a list of
// messages:
//
//	<|channel|>analysis<|message|>thoughts<|end|>
//	<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"x": 1}<|call|>
//	<|start|>assistant<|channel|>final<|message|>text<|return|>
//
// without line ends between them. The prompt has written the first <|start|>assistant. The recipient of a call may
// stand before the channel too.
const (
	messageStart = "<|start|>"
	channelMark  = "<|channel|>"
	messageMark  = "<|message|>"
	typeMark     = "<|constrain|>"
	callEnd      = "<|call|>"
	answerEnd    = "<|return|>"

	analysis  = "analysis"
	recipient = "to="
	functions = "functions." // before the name of a function that the client offers
)

// ChannelEnds returns the marks that end an answer in channels: the one behind its last text, and the one behind a
// call.
func ChannelEnds() []string { return []string{answerEnd, callEnd} }

// MessageEnd is the mark behind a message of an answer in channels.
const MessageEnd = "<|end|>"

func harmony() Syntax {
	return Syntax{Name: Harmony, Channels: true, Marks: []string{messageStart, channelMark, messageMark, typeMark,
		MessageEnd, callEnd, answerEnd}}
}

// messageKind says what becomes of a message.
type messageKind int

const (
	noMessage messageKind = iota // a header comes next
	thoughtMessage
	textMessage
	callMessage
	otherMessage // to nobody known here: it is text as it stands
)

// message reads a part of an answer in channels: the header of a message, or its body as far as it is certain.
func (r *Reader) message(out *strings.Builder, whole bool) []Call {
	switch r.kind {
	case noMessage:
		r.header(out, whole)
		return nil
	case callMessage:
		return r.callBody(out, whole)
	}
	n, end := endOf(r.rest)
	closed := n < len(r.rest)
	if !closed {
		n = r.sure(whole, messageStart, MessageEnd, callEnd, answerEnd)
	}
	if r.kind == otherMessage && end != messageStart {
		n += len(end)
		end = ""
	}
	r.say(out, n, r.kind == thoughtMessage)
	if !closed {
		return nil
	}
	if r.kind == thoughtMessage {
		r.add(out, thoughtClose, true)
	}
	if r.kind = noMessage; end != messageStart {
		r.rest = r.rest[len(end):]
	}
	return nil
}

// endOf returns where the body of a message ends, and the mark there; the end of the text and none if none comes.
func endOf(text string) (n int, mark string) {
	n = len(text)
	for _, m := range []string{messageStart, MessageEnd, callEnd, answerEnd} {
		if i := strings.Index(text[:n], m); i >= 0 {
			n, mark = i, m
		}
	}
	return n, mark
}

// header reads the header of a message. Anything else begins a text.
func (r *Reader) header(out *strings.Builder, whole bool) {
	head, n, more := headerIn(r.rest)
	switch {
	case more && !whole:
		return
	case n == 0:
		r.kind = textMessage
		if _, end := endOf(r.rest); end == messageStart && strings.HasPrefix(r.rest, messageStart) {
			r.say(out, len(messageStart), false) // else it would end the text before it begins
		}
		return
	}
	r.name = ""
	name, own := strings.CutPrefix(head.to, functions)
	_, offered := r.tools[head.to]
	switch {
	case head.role != "" && head.role != "assistant", head.to != "" && !own && !offered, own && !goodName(name):
		r.kind = otherMessage
		r.say(out, n, false)
	case head.to != "":
		r.kind, r.name, r.bodyAt = callMessage, name, n
		return // the header stays until it is certain that there is a call
	case head.channel == analysis:
		r.kind, r.rest = thoughtMessage, r.rest[n:]
		r.add(out, thoughtOpen, true)
	default:
		if r.kind, r.rest = textMessage, r.rest[n:]; r.spoke && r.blank == "" {
			r.add(out, "\n", false) // between texts
		}
	}
}

// callBody reads a call, with its header.
func (r *Reader) callBody(out *strings.Builder, whole bool) []Call {
	body := r.rest[r.bodyAt:]
	_, begin, err := value(body)
	if err != nil {
		begin = 0
	}
	n, end := endOf(body[begin:]) // marks within a value are text
	n += begin
	if (end == "" || err == errMore) && !whole {
		r.tried = len(r.rest)
		return nil
	}
	r.kind, r.tried = noMessage, 0
	n, after := r.bodyAt+n, 0
	if end != messageStart {
		after = len(end)
	}
	args := json.RawMessage(strings.TrimSpace(r.rest[r.bodyAt:n]))
	if r.none || !isObject(args) {
		r.say(out, n+after, false)
		return nil
	}
	r.rest, r.made, r.since = r.rest[n+after:], r.made+1, false
	return []Call{{r.name, args}}
}

// header is a message's header.
type header struct{ role, channel, to string }

// headerIn reads the header that begins a text, and its length up to the message's body; 0 if none begins it. more
// says that this depends on text that has not come.
func headerIn(text string) (h header, n int, more bool) {
	rest := strings.TrimLeft(text, space)
	if after, ok := strings.CutPrefix(rest, messageStart); ok {
		h.role, rest = word(after)
	}
	began := h.role != "" || strings.HasPrefix(rest, channelMark) || strings.HasPrefix(rest, recipient)
	if !began {
		starts := func(mark string) bool { return strings.HasPrefix(mark, rest) }
		return h, 0, starts(messageStart) || starts(channelMark) || starts(recipient)
	}
	for {
		switch rest = strings.TrimLeft(rest, space); {
		case strings.HasPrefix(rest, messageMark):
			return h, len(text) - len(rest) + len(messageMark), false
		case strings.HasPrefix(rest, channelMark) && h.channel == "":
			h.channel, rest = word(rest[len(channelMark):])
		case strings.HasPrefix(rest, typeMark):
			_, rest = word(rest[len(typeMark):])
		case strings.HasPrefix(rest, recipient) && h.to == "":
			h.to, rest = word(rest[len(recipient):])
		default:
			for _, mark := range []string{messageMark, channelMark, typeMark} {
				if strings.HasPrefix(mark, rest) {
					return h, 0, true
				}
			}
			kind, after := word(rest) // of the body, such as json
			if kind == "" {
				return h, 0, false
			}
			rest = after
		}
	}
}

// word returns the word that begins a text, perhaps behind white space, and what follows it.
func word(text string) (w, rest string) {
	text = strings.TrimLeft(text, space)
	rest = strings.TrimLeftFunc(text, nameRune)
	return text[:len(text)-len(rest)], rest
}
