package prompt

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/harness/config"
)

// Texts of rows with a question, of rows with a chat, and of problems that a task makes.
func TestTrainingTexts(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	math := config.Task{Kind: "math", Math: config.Math{Grader: "exp"}}
	asked := write("asked.jsonl", `{"question": "1+1?", "answer": "1+1=2\n#### 2"}`+"\n"+`{"question": "2+2?", "answer": "#### 4"}`+"\n")
	chat := write("chat.jsonl", `{"id": "c", "prompt": "ignored", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "3+3?"}], "answer": "6", "target": "It is 6."}`+"\n")
	for _, tt := range []struct {
		name string
		task config.Task
		data config.Split
		want []string
	}{
		{"questions", math, config.Split{Source: asked}, []string{"1+1?", "1+1=2\n#### 2", "2+2?", "#### 4"}},
		{"the first row", math, config.Split{Source: asked, Size: 1}, []string{"1+1?", "1+1=2\n#### 2"}},
		{"a chat", math, config.Split{Source: chat}, []string{"Be brief.", "3+3?", "It is 6."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := trainingTexts(&config.Run{Task: tt.task, Data: config.Data{Train: tt.data}})
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}

	made, err := trainingTexts(&config.Run{Task: config.Task{Kind: "words", Words: config.Words{LargestNumber: 20, Steps: 1}},
		Data: config.Data{Train: config.Split{Source: config.Generated, Size: 3}}})
	if err != nil || len(made) != 6 || !strings.Contains(made[5], "####") {
		t.Errorf("got %q, %v; want prompt and target of 3 problems", made, err)
	}
	if _, err := trainingTexts(&config.Run{Task: math, Data: config.Data{Train: config.Split{Source: filepath.Join(dir, "none.jsonl")}}}); err == nil || !strings.Contains(err.Error(), "none.jsonl") {
		t.Errorf("error %v does not name the file", err)
	}
}

func trainingTexts(c *config.Run) (list []string, err error) {
	for text, err := range TrainingTexts(c) {
		if err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, nil
}
