package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"exp/cmd/exp/cli"
	"exp/harness/prompt/prompttest"
)

// A question shows the images of files, before its text, as the endpoint's clients do.
func TestChatImages(t *testing.T) {
	dir, folder := prompttest.PictureFolder(t, prompttest.PictureConfig), filepath.Dir(prompttest.Squares(t))
	one, two := filepath.Join(folder, "1.png"), filepath.Join(folder, "2.png")
	text := chatFolder(t, 256)
	flags := []string{"--max-tokens", "9", "--seed", "3"}
	once := func(more ...string) string {
		t.Helper()
		e := call{}.run(append(append([]string{"chat", dir, "Side?"}, flags...), more...)...)
		if e.code != 0 {
			t.Fatal(e.stderr)
		}
		return e.stdout
	}
	s := serveEndpoint(t, dir)
	if !strings.Contains(s.stderr.String(), "images: messages may show them") || !strings.Contains(s.stderr.String(), "vision tower") {
		t.Errorf("exp endpoint notes\n%s", s.stderr)
	}
	said := func(files ...string) (text string, tokens int) {
		t.Helper()
		var parts []string
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, `{"type":"image_url","image_url":{"url":"data:image/png;base64,`+base64.StdEncoding.EncodeToString(b)+`"}}`)
		}
		body := fmt.Sprintf(`{"messages":[{"role":"user","content":[%s,{"type":"text","text":"Side?"}]}],`+
			`"max_tokens":9,"seed":3}`, strings.Join(parts, ","))
		var r struct {
			Choices []struct{ Message struct{ Content string } }
			Usage   struct {
				Prompt int `json:"prompt_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(s.post("/chat/completions", body)), &r); err != nil {
			t.Fatal(err)
		}
		return r.Choices[0].Message.Content, r.Usage.Prompt
	}
	var got struct {
		Data struct {
			Question, Text string
			Images         []string
			Prompt         int `json:"prompt_tokens"`
		}
	}
	named := regexp.MustCompile(`^<image \d\d×24 sha256:[0-9a-f]{8}>$`)
	for _, files := range [][]string{{one}, {one, two}} {
		var more []string
		for _, file := range files {
			more = append(more, "--image", file)
		}
		if err := json.Unmarshal([]byte(once(append(more, "--json")...)), &got); err != nil {
			t.Fatal(err)
		}
		if text, n := said(files...); got.Data.Text != text || got.Data.Prompt != n || got.Data.Question != "Side?" ||
			len(got.Data.Images) != len(files) || !named.MatchString(got.Data.Images[0]) {
			t.Errorf("%q says %+v, the endpoint %q with %d tokens", files, got.Data, text, n)
		}
	}
	s.stop()
	talk := func(script string, more ...string) ended {
		t.Helper()
		return call{stdin: "/max-tokens 9\n/seed 3\n" + script}.run(append([]string{"chat", dir}, more...)...)
	}
	alone, shown, both := once(), once("--image", one), once("--image", one, "--image", two)
	for _, tt := range []struct {
		script string
		more   []string
		want   string
	}{
		{"/image " + one + "\nSide?\n", nil, shown},
		{"Side?\n", []string{"--image", one}, shown},
		{"/image " + one + "\n/image " + two + "\nSide?\n", nil, both},
		{"/image " + one + " " + two + "\nSide?\n", nil, both},
		{"/image " + one + "\n/image\nSide?\n", nil, alone},
		{"/image " + one + "\n/reset\nSide?\n", nil, alone},
		{"/image " + one + "\nSide?\n/reset\nSide?\n", nil, shown + alone},
		{"/image " + one + "\nSide?\n/undo\nSide?\n", nil, shown + alone},
	} {
		if e := talk(tt.script, tt.more...); e.code != 0 || e.stdout != tt.want {
			t.Errorf("%q: code %d, %q, want %q\n%s", tt.script, e.code, e.stdout, tt.want, e.stderr)
		}
	}
	attached := regexp.MustCompile(`1\.png: <image 24×24 sha256:[0-9a-f]{8}>, 9 tokens, goes with the next question`)
	if e := talk("/image " + one + "\n"); !attached.MatchString(e.stderr) {
		t.Errorf("an image is attached:\n%s", e.stderr)
	}
	broken := filepath.Join(t.TempDir(), "broken.png")
	if err := os.WriteFile(broken, []byte("\x89PNG\r\n\x1a\nx"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		model, file, want string
	}{
		{dir, "none.png", "open none.png: no such file"}, {dir, broken, "broken.png: "}, {dir, folder, folder + ": is a directory"},
		{text, one, "1.png: talker reads text alone"}, {dir, filepath.Join(folder, "squares.jsonl"), "squares.jsonl: it is not an image file"},
	} {
		for _, e := range []ended{call{}.run("chat", tt.model, "x", "--image", tt.file),
			call{stdin: "/image " + tt.file + "\n"}.run("chat", tt.model)} {
			if e.code != int(cli.ExitUsage) || !strings.Contains(e.stderr, tt.want) {
				t.Errorf("%s: code %d, want %q in\n%s", tt.file, e.code, tt.want, e.stderr)
			}
		}
	}
	if e := talk("/image\n"); e.code != int(cli.ExitUsage) || !strings.Contains(e.stderr, "/image FILE shows") {
		t.Errorf("no file: code %d\n%s", e.code, e.stderr)
	}
}

// A problem of a run shows its images, in the size of the run.
func TestChatProblemImages(t *testing.T) {
	dir, data, db := prompttest.PictureFolder(t, prompttest.PictureConfig), prompttest.Squares(t), filepath.Join(t.TempDir(), "db")
	args := []string{"run", "../../configs/smoke_cpu.yaml", "-q", "--store", db}
	for _, set := range []string{"name=seen", "task={kind: math, math: {grader: math_dapo}}", "reward={correct: 1, wrong: -1}",
		"sft.steps=0", "train.steps=1", "data.max_prompt_tokens=96", "tokenizer.kind=model", "algo={kind: grpo}",
		"model={init: pretrained, base: " + dir + "}", "rollout.max_new_tokens=8", "eval.final.max_new_tokens=8", "eval.final.n=1",
		"data.image_max_pixels=256", "data.train={source: " + data + ", size: 0}", "data.val={source: " + data + ", size: 0}",
		"data.test={source: " + data + ", size: 0}"} {
		args = append(args, "--set", set)
	}
	call{}.run(args...).succeeds(t)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	e := call{stdin: "/max-tokens 9\n/seed 3\n/problem 2\n"}.run("chat", "seen", "--store", db)
	shown := regexp.MustCompile(`(?s)test problem 2 of 16: .*<image 24×24 sha256:[0-9a-f]{8}></s>Side\?.*gold +5\n.*verdict`)
	if e.code != 0 || !shown.MatchString(e.stdout) {
		t.Fatalf("code %d\n%s\n%s", e.code, e.stdout, e.stderr)
	}
	one := call{}.run("chat", "seen", "Side?", "--image", filepath.Join(filepath.Dir(data), "1.png"), "--max-tokens",
		"9", "--seed", "3", "--store", db)
	if one.code != 0 || !strings.Contains(e.stdout, one.stdout) || !strings.Contains(one.stderr, "sha256:") ||
		!strings.Contains(one.stderr, ", 4 tokens,") {
		t.Errorf("asked with its file %q, as a problem\n%s\n%s", one.stdout, e.stdout, one.stderr)
	}
}
