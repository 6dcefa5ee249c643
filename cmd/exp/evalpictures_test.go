package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/harness/prompt/prompttest"
)

// A benchmark of pictures is read in its published columns, and scored by the likelihoods of letters and options, with
// examples that show images, and by sampled answers.
func TestEvalPictures(t *testing.T) {
	dir := t.TempDir()
	model, squares := prompttest.PictureFolder(t, prompttest.PictureConfig), filepath.Dir(prompttest.Squares(t))
	run := func(args ...string) ended {
		return call{}.run(append(args, "--store", filepath.Join(dir, "store"))...)
	}
	image := func(k int) string {
		b, err := os.ReadFile(filepath.Join(squares, fmt.Sprint(k, ".png")))
		if err != nil {
			t.Fatal(err)
		}
		return `{"bytes":"` + base64.StdEncoding.EncodeToString(b) + `","path":null}`
	}
	file := func(name string, rows ...string) string {
		path := filepath.Join(dir, name)
		writeRows(t, path, rows...)
		return path
	}
	diagram := func(k int) string { // in the columns of AI2D; "1" is the second option
		return `{"question":"Side?","options":["1","7"],"answer":"1","image":` + image(k) + `}`
	}
	const subject = `{"id":"validation_Art_1","question":"Which is %s?","options":"['<image 2>', 'none']","image_1":%s,"image_2":%s,` +
		`"image_7":null,"answer":"A","question_type":"multiple-choice"}`
	run("suite", "add", file("diagrams.jsonl", diagram(0), diagram(1))).succeeds(t)
	run("suite", "add", file("dev.jsonl", diagram(2))).succeeds(t)
	run("suite", "add", file("subjects.jsonl", fmt.Sprintf(subject, "<image 1>", image(0), image(1)))).succeeds(t)
	run("suite", "add", file("lost.jsonl", diagram(0), fmt.Sprintf(subject, "<image 3>", image(0), image(1)))).
		refuses(t, 2, "lost.jsonl:2: ")
	if e := run("suite", "show", "subjects", "--items"); !strings.Contains(e.stdout, "Which is <image>?") {
		t.Errorf("%s%s", e.stdout, e.stderr)
	}

	metrics := func(args ...string) string {
		t.Helper()
		e := run(append([]string{"eval", model, "--json"}, args...)...)
		e.succeeds(t)
		var got struct{ Data []struct{ Metric string } }
		if err := json.Unmarshal([]byte(e.stdout), &got); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range got.Data {
			names = append(names, r.Metric)
		}
		return strings.Join(names, " ")
	}
	shots := []string{"--suite", "diagrams", "--prompt", "{problem}\nA:", "--shots", "1", "--shots-suite", "dev"}
	const likely = "pass@1 not_graded option_prob option_brier accuracy/likelihood accuracy/likelihood_per_char"
	if got := metrics(append(shots, "--likelihood", "option")...); got != likely {
		t.Errorf("options: %s", got)
	}
	e := run("samples", "@last", "-o", "jsonl")
	var reasons []string
	for _, line := range strings.Split(strings.TrimSpace(e.stdout), "\n") {
		var s struct{ Prompt, Reason, Gold string }
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		reasons = append(reasons, s.Reason)
		if strings.Count(s.Prompt, "×24 sha256:") != 2 || strings.Count(s.Prompt, "Side?\nA:") != 2 ||
			strings.Contains(s.Prompt, "B) ") || s.Gold != "B" {
			t.Errorf("%+v", s)
		}
	}
	if len(reasons) != 2 || reasons[0] == reasons[1] {
		t.Errorf("two images, and the options are as likely: %q", reasons)
	}
	if got := metrics(append(shots, "--n", "1", "--max-new-tokens", "2")...); !strings.Contains(got, "accuracy/mmmu") {
		t.Errorf("sampled: %s", got)
	}
	if got := metrics(append(shots, "--likelihood", "letter")...); got != "pass@1 not_graded option_prob option_brier" {
		t.Errorf("letters: %s", got)
	}
	if got := metrics(append(shots, "--likelihood", "off", "--shots", "0", "--n", "1", "--max-new-tokens",
		"3")...); !strings.Contains(got, "accuracy/mmmu") {
		t.Errorf("sampled after that: %s", got)
	}
	if e := run("verify", "@last"); e.code != 0 || !strings.Contains(e.stderr+e.stdout, "completions of 4 evaluations sampled again") ||
		strings.Contains(e.stdout, "NOT checked") {
		t.Errorf("%d\n%s%s", e.code, e.stdout, e.stderr)
	}
	if got := metrics("--suite", "subjects", "--likelihood", "letter"); !strings.HasPrefix(got, "pass@1") {
		t.Errorf("an image as an option: %s", got)
	}
	run("eval", model, "--suite", "subjects", "--likelihood", "option").refuses(t, 2, "option A of problem validation_Art_1 is an image")
}
