package extract

import (
	"slices"
	"strings"
)

// turnEnds are the tokens that end a turn of a chat, or begin the next one, in the templates of common models.
var turnEnds = []string{"<|im_end|>", "<|im_start|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "</s>",
	"<|end_of_text|>", "<|end|>", "<end_of_turn>", "<start_of_turn>", "<|start_header_id|>", "<|end_of_turn|>",
	"<|return|>", "<eos>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<|user|>", "<|eos|>"}

// turnStarts are what may stand before the first turn.
var turnStarts = []string{"<|im_start|>assistant\n", "<|im_start|>assistant", "<|begin_of_text|>", "<s>", "<bos>",
	"<|start_header_id|>assistant<|end_header_id|>", "<|assistant|>", "<start_of_turn>model\n",
	"<｜begin▁of▁sentence｜>", "<｜Assistant｜>"}

// speakerAt returns where the first line of another speaker begins, or the length of the text.
func speakerAt(s string) int {
	for i := 1; i < len(s); i++ {
		k := strings.IndexByte(s[i:], '\n')
		if k < 0 {
			break
		}
		i += k
		if i+1 < len(s) && strings.IndexByte("HUu#", s[i+1]) >= 0 &&
			slices.ContainsFunc(speakers, func(name string) bool { return strings.HasPrefix(s[i:], name) }) {
			return i
		}
	}
	return len(s)
}

// IsMark reports whether a special token marks a part of an answer, such as </think>, [/THINK] or <|channel|>,
// and so ends no turn.
func IsMark(token string) bool {
	token = strings.ToLower(token)
	return slices.ContainsFunc(marks, func(word string) bool { return strings.Contains(token, word) })
}

// IsEndOfThought reports whether a special token ends the thinking before an answer: </think>, [/THINK].
func IsEndOfThought(token string) bool {
	token = strings.ToLower(token)
	return strings.Contains(token, "/") && slices.ContainsFunc([]string{"think", "thought", "reason"},
		func(word string) bool { return strings.Contains(token, word) })
}

// marks are words in the names of tokens that stand inside an answer.
var marks = []string{"think", "thought", "reason", "answer", "solution", "box", "tool", "function", "channel",
	"message", "scratchpad"}

// Turns knows the tokens that end a turn.
type Turns struct {
	ends   []string
	starts string // the first bytes of ends
}

// commonTurns ends turns at the tokens of common models only.
var commonTurns = NewTurns(nil)

// exercises begin another problem, as models write that were trained on lists of solved ones.
var exercises = []string{"\nQuestion:", "\nQ:", "\nProblem:"}

// exerciseAt returns where another problem begins after an answer, the length of the text if none does.
func exerciseAt(s string) int {
	for i := 1; i < len(s); i++ {
		k := strings.Index(s[i:], "\n\n")
		if k < 0 {
			break
		}
		i += k
		next := s[i+1:]
		if !slices.ContainsFunc(exercises, func(e string) bool { return strings.HasPrefix(next, e) }) {
			continue
		}
		before := strings.TrimSpace(s[:i])
		line := before[strings.LastIndexByte(before, '\n')+1:]
		_, boxed := LastBox(line)
		start, _ := lastPhrase(line)
		if boxed || start >= 0 || hasValue(line) && finished(line) && !isQuestion(line) && finalSentence(line) != "" {
			return i
		}
	}
	return len(s)
}

// speakers are the names that start another turn in the output of models trained on dialogues.
var speakers = []string{"\nHuman:", "\nUser:", "\nuser:", "\n### Human", "\n### Instruction", "\n### User"}

// NewTurns returns Turns that end at the tokens of common models and at the special ones of a tokenizer.
func NewTurns(special []string) *Turns {
	t := &Turns{ends: slices.Clone(turnEnds), starts: "<"}
	for _, text := range special {
		if text == "" || IsMark(text) || slices.Contains(t.ends, text) {
			continue
		}
		t.ends = append(t.ends, text)
		if !strings.Contains(t.starts, text[:1]) {
			t.starts += text[:1]
		}
	}
	return t
}

// finalMark matches what begins the answer of gpt-oss, after its thinking; or the same without special tokens.
var (
	finalMark  = lazy(`<\|channel\|>final\b[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>`)
	nextSpeech = lazy(`<\|start\|>(?:user|system|developer)\b`)
	plainFinal = lazy(`^analysis[^a-z](?s:.*?)assistantfinal`)
)

// finalChannel returns the answer of a response in the channels of gpt-oss; empty if it ends in its thinking. Other
// responses are returned as they are.
func finalChannel(s string) string {
	if !strings.Contains(s, "<|channel|>") {
		if strings.HasPrefix(s, "analysis") {
			s = s[len(plainFinal.FindString(s)):]
		}
		return s
	}
	if m := nextSpeech.FindStringIndex(s); m != nil {
		s = s[:m[0]]
	}
	m := finalMark.FindStringIndex(s)
	if m == nil {
		return ""
	}
	return strings.TrimSpace(s[m[1]:])
}

// FirstTurn is First for the tokens of common models.
func FirstTurn(s string) string { return commonTurns.First(s) }

// First cuts a response at the first token that ends a turn: a model that continues answers its own questions.
// Tokens before the first turn are dropped.
func (t *Turns) First(s string) string {
	s = finalChannel(strings.TrimSpace(s))
	for again := true; again; {
		again = false
		for _, start := range turnStarts {
			if after, ok := strings.CutPrefix(s, start); ok {
				s, again = strings.TrimSpace(after), true
			}
		}
	}
	s = s[:exerciseAt(s[:speakerAt(s)])]
	for i := 0; i < len(s); i++ {
		if len(t.starts) == 1 { // the usual case, which is fast
			k := strings.IndexByte(s[i:], '<')
			if k < 0 {
				return s
			}
			i += k
		} else if strings.IndexByte(t.starts, s[i]) < 0 {
			continue
		}
		for _, end := range t.ends {
			if strings.HasPrefix(s[i:], end) {
				return s[:i]
			}
		}
	}
	return s
}
