package sandbox

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:embed hostile.txt
var hostileText string

// attack is a program of hostile.txt.
type attack struct {
	name, kind, what string
	expect           []Verdict // any of them
	limits           Limits
	answer           string // expected output of one that cheats; empty: not compared
	language         string // empty: Python
	source           string
}

// attacks parses hostile.txt: "=== name | kind | verdicts | limits and language", a line that says
// what it is about ("... | answer" for cheats), then the source.
func attacks(text string) ([]attack, error) {
	var list []attack
	for i, part := range strings.Split(text, "\n=== ") {
		if i == 0 {
			continue
		}
		head, rest, _ := strings.Cut(part, "\n")
		what, source, _ := strings.Cut(rest, "\n")
		fields := strings.Split(head, "|")
		if len(fields) != 4 {
			return nil, fmt.Errorf("hostile program %q: four fields are needed", head)
		}
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		a := attack{name: fields[0], kind: fields[1], source: source + "\n"}
		for v := range strings.SplitSeq(fields[2], ",") {
			a.expect = append(a.expect, Verdict(v))
		}
		for word := range strings.FieldsSeq(fields[3]) {
			name, value, _ := strings.Cut(word, "=")
			if name == "language" {
				a.language = value
				continue
			}
			n, err := strconv.ParseInt(value, 10, 64)
			if err == nil {
				err = a.limits.Set(name, n)
			}
			if err != nil {
				return nil, fmt.Errorf("hostile program %s: %w", a.name, err)
			}
		}
		a.what, a.answer, _ = strings.Cut(what, " | ")
		list = append(list, a)
	}
	return list, nil
}

// canaryText is what a file of the host holds.
const canaryText = "a canary that nobody may read or change\n"

// Outcome is what came of one hostile program.
type Outcome struct {
	Name     string    `json:"name"`
	Kind     string    `json:"kind"`
	What     string    `json:"what"`
	Expected []Verdict `json:"expected"`
	Verdict  Verdict   `json:"verdict"`
	OK       bool      `json:"ok"`
	Problem  string    `json:"problem,omitempty"` // what must not have happened
	WallMS   float64   `json:"wall_ms"`
}

// judge tells whether a result is what the attack must get.
func (a attack) judge(r Result) Outcome {
	o := Outcome{Name: a.name, Kind: a.kind, What: a.what, Expected: a.expect, Verdict: r.Verdict}
	for _, run := range r.Runs {
		o.WallMS += float64(run.Wall.Microseconds()) / 1000
		text := string(run.Stdout)
		if strings.Contains(text+string(run.Stderr), strings.TrimSpace(canaryText)) {
			o.Problem = "the program, or its compiler, has read a file of the host"
		}
		if i := strings.Index(text, "ESCAPED"); i >= 0 {
			line, _, _ := strings.Cut(text[i:], "\n")
			o.Problem = "the program got what it must not: " + line
		}
		if o.Problem == "" && !slices.Contains(a.expect, r.Verdict) {
			o.Problem = fmt.Sprintf("%s; %s", run.Detail, lastLine(run.Stderr))
		}
	}
	o.OK = o.Problem == "" && slices.Contains(a.expect, r.Verdict)
	return o
}
