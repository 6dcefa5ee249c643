package toolcall

import (
	"encoding/json"
	"strings"
)

// Reader reads an answer that comes in pieces: it finds the calls, and the text around them. Thoughts between <think>
// and </think> are text, and call nothing. So is what begins like a call but turns out not to be one. Of an answer in
// channels, the text of the analysis is thoughts, the other texts are text, and the marks are left out. Not safe for
// concurrent use.
type Reader struct {
	s        Syntax
	tools    definitions
	one      bool // what follows the first call is dropped
	thinking bool
	rest     string // not read yet
	blank    string // white space behind what was said, said before more text; the last of an answer with calls is not
	spoke    bool   // besides white space and thoughts
	since    bool   // since the last call, too
	made     int    // calls
	open     string // text with which rest begins, and perhaps a call; empty: none
	tried    int    // bytes of rest that did not tell
	later    []byte // behind rest

	none   bool        // nothing is a call
	kind   messageKind // of the message that rest is in, of an answer in channels
	name   string      // of the function that it calls
	bodyAt int         // bytes of its header, with which rest begins if it calls
}

// ReaderOptions configure a Reader.
type ReaderOptions struct {
	Tools    json.RawMessage // definitions of the tools that the answer may call; nil: unknown
	Thinking bool            // the answer begins within thoughts, which its prompt opened
	One      bool            // an answer ends with its first call
	None     bool            // an answer makes no calls; only Syntax.Channels are read
}

// Reader returns a reader for an answer.
func (s Syntax) Reader(o ReaderOptions) *Reader {
	r := &Reader{s: s, tools: definitionsIn(o.Tools), one: o.One, none: o.None, thinking: o.Thinking}
	if s.Channels && o.Thinking {
		r.kind = thoughtMessage
	}
	return r
}

// The marks of thoughts.
const (
	thoughtOpen  = "<think>"
	thoughtClose = "</think>"
)

// OpensThoughts reports whether the text of a prompt ends where an answer begins within thoughts.
func OpensThoughts(prompt string) bool {
	prompt = strings.TrimSpace(prompt)
	return strings.HasSuffix(prompt, thoughtOpen) || strings.HasSuffix(prompt, channelMark+analysis+messageMark)
}

// CutThoughts cuts an answer into the thoughts with which it begins, without their marks, and the rest. ok is false if
// it begins with none that end.
func CutThoughts(answer string) (thoughts, rest string, ok bool) {
	inner, ok := strings.CutPrefix(strings.TrimSpace(answer), thoughtOpen)
	if !ok {
		return "", answer, false
	}
	if thoughts, rest, ok = strings.Cut(inner, thoughtClose); !ok {
		return "", answer, false
	}
	return strings.TrimSpace(thoughts), strings.TrimSpace(rest), true
}

// Read returns the text and the calls that are certain after another piece of the answer, and were not returned
// before. whole says that the answer ends with it. The pieces of an answer may be cut anywhere: together, texts and
// calls are the same.
func (r *Reader) Read(piece string, whole bool) (said string, calls []Call) {
	r.later = append(r.later, piece...)
	if !whole && r.waits(piece) {
		return "", nil
	}
	r.rest += string(r.later)
	r.later = r.later[:0]
	var out strings.Builder
	for r.rest != "" {
		if r.one && r.made > 0 {
			r.rest, r.blank = "", ""
			break
		}
		before, kind := len(r.rest), r.kind
		if r.s.Channels {
			calls = append(calls, r.message(&out, whole)...)
		} else if r.thinking {
			r.think(&out, whole)
		} else {
			calls = append(calls, r.speak(&out, whole)...)
		}
		if len(r.rest) == before && r.kind == kind {
			break // more must come
		}
	}
	if whole && r.made == 0 {
		out.WriteString(r.blank)
	}
	return out.String(), calls
}

// waits reports whether the call that may have begun need not be tried with another piece. Trying a long one with
// every piece would take time with the square of its length; at its end it is always tried.
func (r *Reader) waits(piece string) bool {
	const short = 256
	return r.tried > short && len(r.later) < r.tried/4 && !strings.ContainsAny(piece, ">}]")
}

// think reads thoughts.
func (r *Reader) think(out *strings.Builder, whole bool) {
	n := strings.Index(r.rest, thoughtClose)
	if r.thinking = n < 0; r.thinking {
		n = r.sure(whole, thoughtClose)
	} else {
		n += len(thoughtClose)
	}
	r.say(out, n, true)
}

// speak reads text up to the next call, and that.
func (r *Reader) speak(out *strings.Builder, whole bool) []Call {
	at, open := 0, r.open
	if open == "" {
		at, open = r.next()
	}
	if open == "" {
		r.say(out, r.sure(whole, append([]string{thoughtOpen}, r.s.opens...)...), false)
		return nil
	}
	r.say(out, at, false)
	if r.thinking = open == thoughtOpen; r.thinking {
		r.say(out, len(open), true)
		return nil
	}
	a := r.s.read(r.tools, r.rest, whole)
	r.open, r.tried = "", 0
	switch {
	case a.n == 0 && !whole:
		r.open, r.tried = open, len(r.rest)
	case len(a.calls) == 0:
		r.say(out, max(a.n, len(open)), false)
	default:
		if r.one {
			a.calls = a.calls[:1]
		}
		r.rest, r.made, r.since = r.rest[a.n:], r.made+len(a.calls), false
	}
	return a.calls
}

// next returns where the next call may begin, or thoughts do, and with which text; an empty one if none does.
func (r *Reader) next() (at int, open string) {
	find := func(i int, text string) {
		if i >= 0 && (open == "" || i < at) {
			at, open = i, text
		}
	}
	for _, text := range r.s.opens {
		find(strings.Index(r.rest, text), text)
	}
	find(strings.Index(r.rest, thoughtOpen), thoughtOpen)
	if r.s.bare && !r.spoke {
		if left := strings.TrimLeft(r.rest, r.blanks()); strings.HasPrefix(left, "{") {
			find(len(r.rest)-len(left), "{")
		}
	}
	return at, open
}

// sure returns how much of the rest begins none of these texts.
func (r *Reader) sure(whole bool, texts ...string) int {
	n := len(r.rest)
	if whole {
		return n
	}
	for _, t := range texts {
		for k := min(len(t)-1, len(r.rest)); k > 0; k-- {
			if strings.HasSuffix(r.rest, t[:k]) {
				n = min(n, len(r.rest)-k)
				break
			}
		}
	}
	return n
}

// say says the next n bytes.
func (r *Reader) say(out *strings.Builder, n int, thought bool) {
	text := r.rest[:n]
	r.rest = r.rest[n:]
	r.add(out, text, thought)
}

// add says a text.
func (r *Reader) add(out *strings.Builder, text string, thought bool) {
	text = r.blank + text
	solid := strings.TrimRight(text, space)
	if strings.Trim(solid, r.blanks()) == "" {
		solid = ""
	}
	out.WriteString(solid)
	r.blank = text[len(solid):]
	if solid != "" {
		r.since, r.spoke = true, r.spoke || !thought
	}
}

const space = " \t\r\n"

// blanks are the characters that say nothing by themselves.
func (r *Reader) blanks() string {
	if r.s.bare && r.made > 0 && !r.since {
		return space + ";" // between calls
	}
	return space
}
