package toolcall

import "strings"

// Marks of calls in Python's syntax.
const (
	lfmOpen   = "<|tool_call_start|>"
	lfmClose  = "<|tool_call_end|>"
	olmoOpen  = "<function_calls>"
	olmoClose = "</function_calls>"
)

// pythonic returns a syntax of calls in Python's: LFM2 writes a list, f(x=1), g(), in brackets, Olmo 3 a call in each
// line. All arguments have names, and their values are literals. Nothing is run.
func pythonic(name, open, shut string, list bool) Syntax {
	return Syntax{Name: name, Marks: []string{open, shut}, opens: []string{open},
		read: func(_ definitions, text string, whole bool) attempt {
			return readPythonic(text, open, shut, list, whole)
		}}
}

// readPythonic reads calls between marks. At the end of an answer the second mark may be missing.
func readPythonic(text, open, shut string, list, whole bool) attempt {
	no := attempt{n: len(open)}
	p := python{rest: text[len(open):]}
	p.blank()
	if list && strings.HasPrefix(p.rest, "[{") { // some templates write JSON there
		calls, after, err := callList(p.rest)
		if err == errMore {
			return attempt{}
		} else if err != nil {
			return no
		}
		return closed(text, after, shut, whole, calls)
	}
	if list && !p.take("[") {
		return p.failed(no)
	}
	var calls []Call
	for {
		p.blank()
		if list && p.take("]") || !list && (strings.HasPrefix(p.rest, shut) || whole && p.rest == "") {
			break
		}
		if !list && strings.HasPrefix(shut, p.rest) { // also where nothing has come yet
			return attempt{}
		}
		c, ok := p.call()
		if !ok {
			return p.failed(no)
		}
		calls = append(calls, c)
		if p.blank(); list && !strings.HasPrefix(p.rest, "]") && !p.take(",") {
			return p.failed(no)
		}
	}
	if len(calls) == 0 {
		return no
	}
	return closed(text, p.rest, shut, whole, calls)
}

// failed returns what becomes of a text in which something else stands, or which does not go on.
func (p *python) failed(no attempt) attempt {
	if p.more {
		return attempt{}
	}
	return no
}

// closed returns the attempt that found calls in a text, up to a rest that may begin with a closing mark.
func closed(text, rest, shut string, whole bool, calls []Call) attempt {
	after := strings.TrimLeft(rest, space)
	if left, ok := strings.CutPrefix(after, shut); ok {
		rest = left
	} else if strings.HasPrefix(shut, after) && !whole {
		return attempt{}
	}
	return attempt{calls, len(text) - len(rest)}
}
