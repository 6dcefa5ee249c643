//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Results come in request order, one per line, whatever the line contains.
func TestServeLines(t *testing.T) {
	p := openAt(t, Namespaces, Config{Slots: 2})
	var in strings.Builder
	var want []string
	for i := range 20 {
		fmt.Fprintf(&in, `{"id":"n%d","source":"import time; time.sleep(%g); print(%d)"}`+"\n", i, 0.002*float64((20-i)%5), i)
		want = append(want, fmt.Sprintf("n%d ok", i))
	}
	for line, verdict := range map[string]string{
		`{"id":"bad","source":7}`: "bad infra_error",
		`{"id":"bad","sauce":""}`: "bad infra_error",
		`{"id":"bad"} {}`:         "bad infra_error",
		`nonsense`:                " infra_error",
		`null`:                    " infra_error",
		`{"id":"bad","stdin":""}`: "bad infra_error",
		`{"id":"bad","source":"","limits":{"cpu_ms":-1}}`:            "bad infra_error",
		`{"id":"bad","source":"","mode":"fast"}`:                     "bad infra_error",
		`{"id":"bad","source":"","files":{"../x":""}}`:               "bad infra_error",
		`{"id":"bad","source":"","mode":"call","entry":"f"}`:         "bad infra_error",
		`{"id":"sur","source":"print('\ud800' == chr(0xfffd))"}`:     "sur ok", // Go reads a lone surrogate as U+FFFD
		`{"id":"zero","source":"print(1)\u0000"}`:                    "zero compile_error",
		"  \n" + `{"id":"last","source":"print(1)","tests":[]}`:      "last ok",
		`{"id":"null","source":"print(1)","tests":null,"args":null}`: "null ok",
	} {
		in.WriteString(line + "\n")
		want = append(want, verdict)
	}
	var out strings.Builder
	if err := p.ServeLines(context.Background(), strings.NewReader(strings.TrimSuffix(in.String(), "\n")), &out, 2); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		var r struct {
			ID      string
			Verdict Verdict
			Runs    []RunRow
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		got = append(got, r.ID+" "+string(r.Verdict))
		if r.Verdict == InfraError && !strings.Contains(line, `"detail":"`) {
			t.Errorf("no reason: %s", line)
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
