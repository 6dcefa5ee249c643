package toolcall

import (
	"maps"
	"slices"

	"exp/train/form"
)

// Frames returns what models write around calls, in the ways of a syntax, as readers read it back. spelled are the
// marks that are tokens without a text. All syntaxes have frames but the zero one.
func (s Syntax) Frames(spelled map[int32]string) []form.Frame {
	const named, arguments = `{"name": "`, `", "arguments": `
	switch s.Name {
	case Hermes:
		return []form.Frame{{Open: "<tool_call>\n" + named, Between: arguments, Close: "}\n</tool_call>",
			Separator: "\n"}}
	case Llama3:
		return []form.Frame{{Open: named, Between: `", "parameters": `, Close: "}", Separator: "; "}}
	case Mistral:
		if slices.Contains(slices.Collect(maps.Values(spelled)), mistralArgs) {
			return []form.Frame{{Open: s.opens[0], Between: mistralArgs}}
		}
		return []form.Frame{{Begin: s.opens[0] + "[", Open: named, Between: arguments, Close: "}", Separator: ", ",
			End: "]"}}
	case Granite:
		return []form.Frame{{Begin: graniteOpen + "[", Open: named, Between: arguments, Close: "}", Separator: ", ",
			End: "]"}}
	case DeepSeek: // V3.1, and V3 with R1
		return []form.Frame{
			{Begin: callsBegin, Open: oneBegin, Between: oneSep, Close: oneEnd, End: callsEnd},
			{Begin: callsBegin, Open: oneBegin + "function" + oneSep, Between: "\n```json\n", Close: "\n```" + oneEnd,
				Separator: "\n", End: callsEnd}}
	case Harmony: // a token that ends the answer comes behind a call
		const commentary = channelMark + "commentary"
		return []form.Frame{
			{Open: commentary + " " + recipient + functions, Between: " " + typeMark + "json" + messageMark,
				One: true},
			{Open: " " + recipient + functions, Between: commentary + " json" + messageMark, One: true}}
	case Qwen3Coder:
		return []form.Frame{{Open: "<tool_call>\n" + functionOpen, Between: ">\n",
			Close: functionClose + "\n</tool_call>", Separator: "\n", Fields: form.Fields{Open: parameterOpen,
				Between: ">\n", Close: "\n" + parameterClose + "\n", Stop: parameterClose}}}
	case GLM: // 4.7, and 4.5 with 4.6
		return []form.Frame{
			{Open: "<tool_call>", Close: "</tool_call>", Fields: form.Fields{Open: keyOpen,
				Between: keyClose + valueOpen, Close: valueClose, Stop: valueClose}},
			{Open: "<tool_call>", Between: "\n", Close: "</tool_call>", Separator: "\n", Fields: form.Fields{
				Open: keyOpen, Between: keyClose + "\n" + valueOpen, Close: valueClose + "\n", Stop: valueClose}}}
	case MiniMax:
		return []form.Frame{{Begin: miniMaxOpen + "\n", Open: invokeOpen, Between: nameClose + "\n",
			Close: invokeClose + "\n", End: miniMaxClose, Fields: form.Fields{Open: namedOpen, Between: nameClose,
				Close: namedClose + "\n", Stop: namedClose}}}
	case LFM2:
		return []form.Frame{{Begin: lfmOpen + "[", Separator: ", ", End: "]" + lfmClose,
			Fields: form.Fields{Python: true}}}
	case Olmo3:
		return []form.Frame{{Begin: olmoOpen, Separator: "\n", End: olmoClose, Fields: form.Fields{Python: true}}}
	}
	return nil
}

// Parts returns how answers in channels have their thoughts and texts; zero for others.
func (s Syntax) Parts() form.Channels {
	if !s.Channels {
		return form.Channels{}
	}
	return form.Channels{Open: channelMark + analysis + messageMark, Close: MessageEnd + messageStart + "assistant",
		Ends: messageStart + " " + MessageEnd + " " + callEnd + " " + answerEnd,
		Text: channelMark + "final" + messageMark}
}

// ThoughtsEnd closes the thoughts that OpensThoughts finds open, in answers without channels.
const ThoughtsEnd = thoughtClose
