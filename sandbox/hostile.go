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
	alone            []Verdict // the same at level landlock; nil: as expect
	unpromised       bool      // level landlock does not stop it
	limits           Limits
	answer           string // expected output for a cheat; empty: not compared
	language         string // empty: Python
	source           string
}

// attacks parses hostile.txt: "=== name | kind | verdicts | limits, language and what level landlock
// gives", a line that describes it ("... | answer" for cheats), then the source.
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
			return nil, fmt.Errorf("hostile program %q: want four fields", head)
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
			switch {
			case name == "language":
				a.language = value
				continue
			case name == "landlock" && value == "unpromised":
				a.unpromised = true
				continue
			case name == "landlock":
				for v := range strings.SplitSeq(value, ",") {
					a.alone = append(a.alone, Verdict(v))
				}
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

// canaryText is the content of a file on the host.
const canaryText = "a canary that nobody may read or change\n"

// Outcome is the result of one hostile program.
type Outcome struct {
	Name     string    `json:"name"`
	Kind     string    `json:"kind"`
	What     string    `json:"what"`
	Expected []Verdict `json:"expected"`
	Verdict  Verdict   `json:"verdict"`
	OK       bool      `json:"ok"`

	Unpromised bool `json:"unpromised,omitempty"` // the level does not promise it, so OK says nothing

	Problem string  `json:"problem,omitempty"` // what went wrong
	WallMS  float64 `json:"wall_ms"`
}

// at returns the attack with its expected result at a level.
func (a attack) at(l Level) attack {
	switch {
	case l != Landlock:
		a.unpromised = false
	case a.language != "":
		a.expect = []Verdict{InfraError} // rejected: the level runs only Python
	case a.alone != nil:
		a.expect = a.alone
	}
	return a
}

// judge checks whether the attack got the result that it must get.
func (a attack) judge(r Result) Outcome {
	o := Outcome{Name: a.name, Kind: a.kind, What: a.what, Expected: a.expect, Verdict: r.Verdict,
		Unpromised: a.unpromised}
	for _, run := range r.Runs {
		o.WallMS += float64(run.Wall.Microseconds()) / 1000
		text := string(run.Stdout)
		if strings.Contains(text+string(run.Stderr), strings.TrimSpace(canaryText)) {
			o.Problem = "the program or its compiler read a file of the host"
		}
		if i := strings.Index(text, "ESCAPED"); i >= 0 {
			line, _, _ := strings.Cut(text[i:], "\n")
			o.Problem = "the program got through: " + line
		}
		if o.Problem == "" && !slices.Contains(a.expect, r.Verdict) {
			o.Problem = fmt.Sprintf("%s; %s", run.Detail, lastLine(run.Stderr))
		}
	}
	o.OK = o.Problem == "" && slices.Contains(a.expect, r.Verdict)
	return o
}
