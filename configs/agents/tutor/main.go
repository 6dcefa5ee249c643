// Command tutor is an example of an agent: it asks the policy a word problem, and again after a wrong answer.
//
//	exp run configs/agent_cpu.yaml
//
// It reads a JSON line for each episode and writes one when the episode is over, as exp config explain
// rollout.tools.conversations says. In between it asks the policy by OpenAI's API. A right answer scores 1
// at the first try and 0.5 at the second.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout) // writes each line at once
	for in.Scan() {
		var e episode
		r := result{}
		err := json.Unmarshal(in.Bytes(), &e)
		if err == nil {
			r.ID = e.ID
			if r.Score, r.Answer, err = e.play(); err != nil {
				r.Error = err.Error()
			}
			err = out.Encode(r)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "tutor:", err)
			os.Exit(1)
		}
	}
}

// episode is a line of input.
type episode struct {
	ID      string `json:"id"`
	BaseURL string `json:"base_url"`
	Key     string `json:"api_key"`
	Prompt  string `json:"prompt"`
	Gold    string `json:"gold"`
}

// result is a line of output.
type result struct {
	ID     string  `json:"id"`
	Score  float64 `json:"score"`
	Answer string  `json:"answer"`
	Error  string  `json:"error,omitempty"`
}

// play asks twice at most.
func (e *episode) play() (score float64, answer string, err error) {
	text := e.Prompt
	for score = 1; score >= 0.5; score /= 2 {
		said, err := e.ask(text)
		if err != nil {
			return 0, "", err
		}
		_, answer, _ = strings.Cut(said, "####") // what follows is the answer, as in GSM8K
		if answer = strings.TrimSpace(answer); answer == e.Gold {
			return score, answer, nil
		}
		text += said + "\n" + e.Prompt // a request repeats what was said before it adds something
	}
	return 0, answer, nil
}

// ask returns how the policy continues a text.
func (e *episode) ask(text string) (string, error) {
	body, err := json.Marshal(map[string]any{"model": "policy", "prompt": text, "max_tokens": 32})
	if err != nil {
		return "", err
	}
	r, err := http.NewRequest(http.MethodPost, e.BaseURL+"/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+e.Key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", answer.Status, b)
	}
	var a struct {
		Choices []struct {
			Text string `json:"text"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(b, &a); err != nil || len(a.Choices) == 0 {
		return "", fmt.Errorf("no choices in %s", b)
	}
	return a.Choices[0].Text, nil
}
