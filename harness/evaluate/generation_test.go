package evaluate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/harness/inspect"
)

// recommending returns a model's folder with text as its generation_config.json, or without the file if text is empty.
func recommending(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "inspect", "testdata", "peft", "base"))); err != nil {
		t.Fatal(err)
	}
	if text != "" {
		if err := os.WriteFile(filepath.Join(dir, "generation_config.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRecommended(t *testing.T) {
	for _, tt := range []struct{ text, want, bad string }{
		{text: ""},
		{text: "{}"},
		// Qwen2.5-0.5B-Instruct's.
		{text: `{"bos_token_id": 151643, "pad_token_id": 151643, "do_sample": true, "eos_token_id": [151645, 151643],
			"repetition_penalty": 1.1, "temperature": 0.7, "top_p": 0.8, "top_k": 20, "transformers_version": "4.37.0"}`,
			want: "temperature 0.7, top_p 0.8, top_k 20, repetition_penalty 1.1"},
		{text: `{"top_k": -1, "min_p": 0.05, "temperature": null, "max_new_tokens": 2048}`, want: "top_k 0, min_p 0.05"},
		{text: `{"top_k": "20"}`, bad: "top_k"},
		{text: `{"top_p": 1.5}`, bad: "top_p is 1.5"},
		{text: `{`, bad: "generation_config.json"},
	} {
		list, err := Recommended(recommending(t, tt.text))
		if tt.bad != "" {
			if err == nil || !strings.Contains(err.Error(), tt.bad) {
				t.Errorf("%s: error %v", tt.text, err)
			}
			continue
		}
		if got := RecommendedText(list); err != nil || got != tt.want {
			t.Errorf("%s: %q, %v, want %q", tt.text, got, err, tt.want)
		}
	}
}

// The file's settings hold if the user asks for them and no flag sets them. Otherwise the file changes nothing: an
// evaluation has the name, and so the id, that it has without the file.
func TestGeneration(t *testing.T) {
	dir := recommending(t, `{"temperature": 0.7, "top_p": 0.8, "top_k": 20, "repetition_penalty": 1.1}`)
	configured := func(f Folder) config.Final {
		t.Helper()
		f.Folder = inspect.Folder{Dir: dir}
		f.Values = append(f.Values, config.Value{Path: config.SuitesKey, Value: []string{"a"}, From: "--suite"})
		r, err := f.Config()
		if err != nil {
			t.Fatal(err)
		}
		return r.Run.Eval.Final
	}
	if c := configured(Folder{}); c.Temperature != 1 || c.TopP != 1 || c.TopK != 0 || c.Repetition != 1 {
		t.Errorf("without --generation-config: %+v", c)
	}
	if c := configured(Folder{Generation: true}); c.Temperature != 0.7 || c.TopP != 0.8 || c.TopK != 20 || c.Repetition != 1.1 || c.MinP != 0 {
		t.Errorf("with --generation-config auto: %+v", c)
	}
	own := []config.Value{{Path: "eval.final.repetition_penalty", Value: "1", From: "--repetition-penalty"}}
	if c := configured(Folder{Generation: true, Values: own, Sets: []string{"eval.final.top_k=0"}}); c.Temperature != 0.7 || c.TopK != 0 || c.Repetition != 1 {
		t.Errorf("with flags too: %+v", c)
	}
}
