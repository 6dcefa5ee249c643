package trackers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"math"
	"path"
	"strconv"
	"strings"

	"exp/experiments/ident"
)

// Completion is one line of a verl dump, DIR/STEP.jsonl: an object with input, output,
// score, step, in newer versions gts, and any other values that the reward function
// returned (verl/trainer/ppo/ray_trainer.py, _dump_generations).
type Completion struct {
	Step    int64
	Problem string // id: of the prompt and the expected answer
	K       int    // which of the problem's completions at this step
	Prompt  string
	Text    string
	Want    string // the expected answer; empty if not known
	Answer  string // the answer found in the text; empty if not known
	Score   float64
	Correct bool
}

// Dump holds the completions of one folder.
type Dump struct {
	Name        string // of the folder
	Completions []Completion
}

// dumpLine holds the fields read from a line.
type dumpLine struct {
	Input  *string         `json:"input"`
	Output *string         `json:"output"`
	Want   json.RawMessage `json:"gts"`
	Score  json.RawMessage `json:"score"`
	Acc    json.RawMessage `json:"acc"`
	Pred   json.RawMessage `json:"pred"`
	Step   *int64          `json:"step"`
}

// isDump reports whether a line is from a dump.
func isDump(line []byte) bool {
	var d dumpLine
	return json.Unmarshal(pythonJSON(line), &d) == nil && d.Input != nil && d.Output != nil
}

// readDump reads a dump. Lines without a step take it from the file's name.
func readDump(name string, r io.Reader) ([]Completion, error) {
	var list []Completion
	times := map[string]int{}
	err := eachLine(r, func(n int, line []byte) error {
		var d dumpLine
		err := json.Unmarshal(pythonJSON(line), &d)
		bad := func(msg string) error { return &FormatError{Path: name, Line: n, Msg: msg} }
		switch {
		case err != nil:
			return bad("it is not a JSON object: " + err.Error())
		case d.Input == nil || d.Output == nil:
			return bad("a completion needs input and output")
		}
		c := Completion{Prompt: *d.Input, Text: *d.Output, Want: plainText(d.Want), Answer: plainText(d.Pred),
			Score: math.NaN()}
		if d.Step != nil {
			c.Step = *d.Step
		} else if c.Step, err = strconv.ParseInt(strings.TrimSuffix(path.Base(name), path.Ext(name)), 10,
			64); err != nil {
			return bad("neither the line nor the file name gives a step")
		}
		if v, ok := jsonNumber(d.Score); ok {
			c.Score = v
		}
		c.Correct = c.Score > 0
		if acc, ok := jsonNumber(d.Acc); ok {
			c.Correct = acc > 0
		}
		c.Problem = ident.Sum([]byte(c.Prompt + "\x00" + c.Want)).Short()
		key := strconv.FormatInt(c.Step, 10) + " " + c.Problem
		c.K = times[key]
		times[key]++
		list = append(list, c)
		return nil
	})
	return list, err
}

// plainText unquotes a JSON string and returns other values unchanged.
func plainText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// maxLine bounds a line, far above a completion of a hundred thousand tokens.
const maxLine = 64 << 20

// eachLine calls f for each line that is not empty, counted from 1.
func eachLine(r io.Reader, f func(n int, line []byte) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 1<<16), maxLine)
	for n := 1; s.Scan(); n++ {
		if line := bytes.TrimSpace(s.Bytes()); len(line) > 0 {
			if err := f(n, line); err != nil {
				return err
			}
		}
	}
	return s.Err()
}
