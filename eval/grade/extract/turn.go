package extract

import "strings"

// turnEnds are the tokens that end a turn of a chat, or begin the next one, in the templates of common models.
var turnEnds = []string{"<|im_end|>", "<|im_start|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "</s>",
	"<|end_of_text|>", "<|end|>", "<end_of_turn>", "<start_of_turn>", "<|start_header_id|>", "<|end_of_turn|>",
	"<|return|>", "<eos>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<|user|>", "<|eos|>"}

// turnStarts are what may stand before the first turn.
var turnStarts = []string{"<|im_start|>assistant\n", "<|im_start|>assistant", "<|begin_of_text|>", "<s>", "<bos>",
	"<|start_header_id|>assistant<|end_header_id|>", "<|assistant|>", "<start_of_turn>model\n",
	"<｜begin▁of▁sentence｜>", "<｜Assistant｜>"}

// FirstTurn cuts a response at the first token that ends a turn: a model that goes on answers questions of its
// own.
func FirstTurn(s string) string {
	s = strings.TrimSpace(s)
	for again := true; again; {
		again = false
		for _, t := range turnStarts {
			if after, ok := strings.CutPrefix(s, t); ok {
				s, again = strings.TrimSpace(after), true
			}
		}
	}
	for i := 0; ; i++ {
		k := strings.IndexByte(s[i:], '<')
		if k < 0 {
			break
		}
		i += k
		for _, t := range turnEnds {
			if strings.HasPrefix(s[i:], t) {
				s = s[:i]
				break
			}
		}
		if i >= len(s) {
			break
		}
	}
	return s
}
