package toolcall

import "strings"

// Texts of MiniMax-M2's calls.
const (
	miniMaxOpen  = "<minimax:tool_call>"
	miniMaxClose = "</minimax:tool_call>"
	invokeOpen   = `<invoke name="`
	invokeClose  = "</invoke>"
	namedOpen    = `<parameter name="`
	namedClose   = "</parameter>"
	nameClose    = `">`
	longestName  = 256 // bytes between the quotes
)

// miniMax returns the syntax of MiniMax-M2: functions with their parameters between tags, one or several. Values are
// texts, or JSON, as for GLM.
func miniMax() Syntax {
	return Syntax{Name: MiniMax, Marks: []string{miniMaxOpen, miniMaxClose}, opens: []string{miniMaxOpen},
		read: func(tools definitions, text string, whole bool) attempt { return tools.readMiniMax(text, whole) }}
}

// readMiniMax reads functions between tags.
func (d definitions) readMiniMax(text string, whole bool) attempt {
	var out attempt
	rest := text[len(miniMaxOpen):]
	for {
		rest = strings.TrimLeft(rest, space)
		if after, ok := strings.CutPrefix(rest, miniMaxClose); ok && len(out.calls) > 0 {
			out.n = len(text) - len(after)
			return out
		}
		c, after, err := d.readInvoke(rest, whole)
		switch {
		case err == errMore, err != nil && strings.HasPrefix(miniMaxClose, rest):
			return attempt{}
		case err != nil:
			return attempt{n: len(miniMaxOpen)}
		}
		out.calls, rest = append(out.calls, c), after
	}
}

// readInvoke reads the function that begins a text, and returns what follows it. The error is errMore if it goes on
// beyond the text.
func (d definitions) readInvoke(text string, whole bool) (c Call, after string, err error) {
	if c.Name, text, err = named(text, invokeOpen); err != nil {
		return c, "", err
	}
	if !goodName(c.Name) {
		return c, "", errNoParameter
	}
	var args fields
	for {
		text = strings.TrimLeft(text, space)
		if after, ok := strings.CutPrefix(text, invokeClose); ok {
			c.Arguments = args.object()
			return c, after, nil
		}
		name, inner, err := named(text, namedOpen)
		if err != nil && strings.HasPrefix(invokeClose, text) {
			err = errMore
		}
		if err != nil {
			return c, "", err
		}
		kinds := d.kinds(c.Name, name)
		said, next, ok := cutTyped(inner, namedClose, kinds, whole)
		if !ok {
			return c, "", errMore
		}
		args.set(name, typed(said, kinds))
		text = next
	}
}

// named returns the name in a tag that begins a text, and what follows the tag. The error is errMore if the tag goes
// on beyond the text.
func named(text, open string) (name, after string, err error) {
	inner, ok := strings.CutPrefix(text, open)
	switch {
	case !ok && strings.HasPrefix(open, text):
		return "", "", errMore
	case !ok:
		return "", "", errNoParameter
	}
	end := strings.Index(inner, nameClose)
	switch {
	case end >= 0 && end <= longestName:
		return inner[:end], inner[end+len(nameClose):], nil
	case end < 0 && len(inner) < longestName+len(nameClose):
		return "", "", errMore
	}
	return "", "", errNoParameter
}
