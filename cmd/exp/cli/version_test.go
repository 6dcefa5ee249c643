package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	got := call{}.run("--version")
	if got.code != 0 || !strings.HasPrefix(got.stdout, "exp ") || strings.Count(got.stdout, "\n") != 1 {
		t.Errorf("--version: %+v", got)
	}
	if long := (call{}).run("version"); long != got {
		t.Errorf("version %+v differs from --version %+v", long, got)
	}
	var e struct {
		Schema string
		Data   map[string]any
	}
	got = call{}.run("version", "--json")
	if err := json.Unmarshal([]byte(got.stdout), &e); err != nil {
		t.Fatal(err)
	}
	device := e.Data["device"]
	if e.Schema != "exp.version/1" || device != "cpu" && device != "cuda" || e.Data["go"] == "" {
		t.Errorf("version --json: %+v", e)
	}
	call{}.run("version", "--fields", "device,platfrom").check(t, 2, "", "did you mean platform?")
	call{}.run("version", "--fields", "device", "-o", "csv").check(t, 0, fmt.Sprintf("device\n%s\n", device))
}

// TestBuildString reads the line that people paste into reports.
func TestBuildString(t *testing.T) {
	b := Build{Version: "v1.2.0", Commit: "0123456789abcdef", Modified: true, Go: "go1.26", Platform: "linux/amd64", Device: "cuda"}
	want := "exp v1.2.0 (commit 0123456789ab+changes, go1.26, linux/amd64, cuda)"
	if got := b.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
