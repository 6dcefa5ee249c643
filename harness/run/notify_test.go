package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"exp/harness/notice"
)

// Each way a run can end is told once; a finished run that is found again tells nothing.
func TestNotify(t *testing.T) {
	var told []notice.Notice
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var n notice.Notice
		text, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(text, &n); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		told = append(told, n)
	}))
	defer server.Close()
	sets := []string{"train.steps=2", "notify.webhook=" + server.URL}
	l := newLab(t)
	ctx, cancel := context.WithCancel(context.Background())
	interrupt := &quiet{progress: func(stage string, done int) {
		if stage == "train" && done == 1 {
			cancel()
		}
	}}
	_, _ = l.try(ctx, l.plan(0, sets...), interrupt)                                                                   // a signal
	_, _ = l.try(context.Background(), l.plan(0, append(sets, "run.stop_if=[training/global_step > 0]")...), &quiet{}) // a condition
	res, _ := l.execute(l.plan(0, sets...))
	l.execute(l.plan(0, sets...)) // from the cache
	good := l.be
	l.be = &breaking{Backend: good, at: 1}
	_, _ = l.try(context.Background(), l.plan(0, append(sets, "sft.steps=20")...), &quiet{})
	l.be, l.options.NoCache = crooked{good}, true
	_, _ = l.try(context.Background(), l.plan(0, sets...), &quiet{})
	var got []string
	for _, n := range told {
		got = append(got, fmt.Sprintf("%s %d/%d %d", n.Event, n.Steps, n.Of, n.ExitCode))
	}
	want := "[stopped 1/2 130 stopped 1/2 9 done 2/2 0 failed 0/2 1 diverged 2/2 1]"
	if fmt.Sprint(got) != want {
		t.Fatalf("told %v, want %s", got, want)
	}
	if n := told[2]; n.Run != res.Run.RID.String() || n.Name != "smoke" || n.Results["pass@1"] != res.Run.Headline[0].Value || n.Host == "" {
		t.Errorf("notice %+v", n)
	}
	if told[0].Reason != "a signal, in train" || told[3].Reason == "" {
		t.Errorf("reasons %q, %q", told[0].Reason, told[3].Reason)
	}
}

// A notice that cannot be given is a warning, never a failure. What is missing is said before the work, too.
func TestNotifyFailure(t *testing.T) {
	l := startedLab(t)
	var early []string
	q := &quiet{}
	q.progress = func(stage string, done int) {
		if stage == "train" && early == nil {
			early = slices.Clone(q.warnings)
		}
	}
	res, err := l.try(context.Background(), l.plan(0, "train.steps=1", "notify.command=[/no/such/program]", "notify.webhook=env:EXP_TEST_UNSET"), q)
	if err != nil || res.Run.Status != "done" || len(q.warnings) != 4 || len(early) != 2 {
		t.Errorf("%v, status %s, warnings %q, of which %d before the work; want done, and two warnings at each end", err, res.Run.Status,
			q.warnings, len(early))
	}
	want := []string{"notify.command cannot tell when the run ends: ", "notify.webhook: the environment variable EXP_TEST_UNSET is not set"}
	for i, warning := range early {
		if !strings.HasPrefix(warning, want[i]) {
			t.Errorf("warning %q, want %q", warning, want[i])
		}
	}
}
