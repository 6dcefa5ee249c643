package stage

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// agentProgram is an agent that asks a problem, and then once more. A turn earns 0.5 for a plus in it and 0.25 for a
// times; its state is its number and whether a times came before.
func agentProgram() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var e struct {
			ID, Prompt string
			BaseURL    string `json:"base_url"`
		}
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			panic(err)
		}
		text := e.Prompt
		var turns []string
		for turn := range 2 {
			b, _ := json.Marshal(map[string]any{"prompt": text, "max_tokens": 12})
			r, err := http.Post(e.BaseURL+"/completions", "application/json", bytes.NewReader(b))
			if err != nil {
				panic(err)
			}
			var a struct{ Choices []struct{ Text string } }
			if err := json.NewDecoder(r.Body).Decode(&a); err != nil || len(a.Choices) == 0 {
				panic(fmt.Sprint(err, a))
			}
			_ = r.Body.Close()
			said := a.Choices[0].Text
			reward := float64(min(1, strings.Count(said, "+")))/2 + float64(min(1, strings.Count(said, "*")))/4
			turns = append(turns, fmt.Sprintf(`{"reward": %v, "state": "turn %d, %v so far"}`, reward, turn, strings.Contains(text, "*")))
			text += said + "\n" + e.Prompt
		}
		fmt.Printf(`{"id": %q, "turns": [%s]}`+"\n", e.ID, strings.Join(turns, ", "))
	}
}
