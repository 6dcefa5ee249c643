package stage

import "fmt"

// promptEncoder encodes prompts within a limit of tokens: truncate says what
// becomes of a longer one ("error", or the side that is cut off: "left", "right").
func promptEncoder(encode func(string) ([]int32, error), limit int, truncate string) func(string) ([]int32, error) {
	return func(text string) ([]int32, error) {
		ids, err := encode(text)
		if err != nil || len(ids) <= limit {
			return ids, err
		}
		switch truncate {
		case "left":
			return ids[len(ids)-limit:], nil
		case "right":
			return ids[:limit], nil
		}
		return nil, fmt.Errorf("the prompt has %d tokens, data.max_prompt_tokens is %d; raise it, or set data.truncate", len(ids), limit)
	}
}
