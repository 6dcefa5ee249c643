package toolcall

import "strings"

// Marks of DeepSeek's calls.
const (
	callsBegin = "<｜tool▁calls▁begin｜>"
	callsEnd   = "<｜tool▁calls▁end｜>"
	oneBegin   = "<｜tool▁call▁begin｜>"
	oneSep     = "<｜tool▁sep｜>"
	oneEnd     = "<｜tool▁call▁end｜>"
)

// deepSeek returns the syntax of DeepSeek-V3 and R1, whose calls are
//
//	<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f
//	```json
//	{"x": 1}
//	```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
//
// and of V3.1, where a call is <｜tool▁call▁begin｜>f<｜tool▁sep｜>{"x": 1}<｜tool▁call▁end｜>. Several calls stand between
// the outer marks.
func deepSeek() Syntax {
	return Syntax{Name: DeepSeek, Marks: []string{callsBegin, callsEnd, oneBegin, oneSep, oneEnd},
		opens: []string{callsBegin}, read: func(_ definitions, text string, whole bool) attempt {
			return readDeepSeek(text, whole)
		}}
}

// readDeepSeek reads a list of calls. At the end of an answer its end may be missing.
func readDeepSeek(text string, whole bool) attempt {
	var out attempt
	rest := text[len(callsBegin):]
	for {
		rest = strings.TrimLeft(rest, space)
		if after, ok := strings.CutPrefix(rest, callsEnd); ok && len(out.calls) > 0 {
			out.n = len(text) - len(after)
			return out
		}
		if whole && rest == "" && len(out.calls) > 0 {
			out.n = len(text)
			return out
		}
		inner, after, err := deepSeekInner(rest, whole)
		if err == errMore || err != nil && strings.HasPrefix(callsEnd, rest) {
			return attempt{}
		}
		c, ok := deepSeekCall(inner)
		if err != nil || !ok {
			return attempt{n: len(callsBegin)}
		}
		out.calls, rest = append(out.calls, c), after
	}
}

// deepSeekInner is between for the inner marks of a call, whose arguments may have the second as text.
func deepSeekInner(text string, whole bool) (inner, after string, err error) {
	rest, ok := strings.CutPrefix(text, oneBegin)
	at := strings.Index(rest, "{")
	if end := strings.Index(rest, oneEnd); !ok || at < 0 || end >= 0 && end < at {
		return between(text, oneBegin, oneEnd)
	}
	inner, after, ok = cutValue(rest[at:], oneEnd, whole)
	if !ok {
		return "", "", errMore
	}
	return rest[:at] + inner, after, nil
}

// deepSeekCall reads the call between inner marks.
func deepSeekCall(text string) (c Call, ok bool) {
	name, args, ok := strings.Cut(text, oneSep)
	if !ok {
		return c, false
	}
	if !strings.HasPrefix(strings.TrimLeft(args, space), "{") {
		const fence = "```"
		if name, args, ok = strings.Cut(args, fence+"json"); !ok {
			return c, false
		}
		if args, ok = strings.CutSuffix(strings.TrimRight(args, space), fence); !ok {
			return c, false
		}
	}
	c = Call{strings.TrimSpace(name), []byte(strings.TrimSpace(args))}
	return c, goodName(c.Name) && isObject(c.Arguments)
}
