package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A judge reads what two runs wrote: its answers are kept, so a second time nothing is asked; errors come before.
func TestDiversity(t *testing.T) {
	var asked, closed atomic.Bool // with the key; whether the judge refuses all
	var different sync.Map        // requests that it answers: on a busy machine one may be repeated
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without the key several requests begin at once. Those that the first answer interrupts may come much later.
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if asked.Store(true); closed.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		different.Store(string(body), true)
		score := "2"
		if strings.Contains(string(body), "[Response 6]") && !strings.Contains(string(body), "[Response 7]") {
			score = "4"
		}
		io.WriteString(w, `{"choices": [{"message": {"content": "`+score+`"}, "finish_reason": "stop"}]}`)
	}))
	defer server.Close()
	dir := filepath.Join(t.TempDir(), "store")
	smoke(t, dir, "--set", "name=one", "--set", "eval.final.n=6", "--set", "eval.final.pass_k=[1]").succeeds(t)
	smoke(t, dir, "--set", "name=two", "--set", "train.optim.lr=7e-4", "--set", "eval.final.n=8", "--set", "eval.final.pass_k=[1]").succeeds(t)
	judge := func(args ...string) ended {
		env := map[string]string{"HOME": t.TempDir(), "NO_COLOR": "1", "KEY": "secret"}
		flags := []string{"--store", dir, "--url", server.URL, "--model", "judge"}
		return call{env: env}.run(slices.Concat([]string{"diversity", "one", "two"}, flags, args)...)
	}
	judge().refuses(t, 8, "401", "check --url, --model, and the key in the variable named by --key-env")
	dry := judge("--dry-run", "--key-env", "KEY", "--problems", "3")
	dry.says(t, "[Response 6]", "6 of the 6 share")
	if !strings.Contains(dry.stderr, "2 runs, 3 problems, 12 requests") || asked.Load() {
		t.Errorf("a dry run asked, or says %s", dry.stderr)
	}
	first := judge("--key-env", "KEY", "--json", "--problems", "3", "--concurrent", "1")
	first.succeeds(t)
	var d struct {
		Data struct {
			Problems []string
			Arms     []struct{ Score float64 }
			Pairs    []struct{ Delta float64 }
			Same     float64
			Judge    struct{ Model, Template string }
		}
	}
	if err := json.Unmarshal([]byte(first.stdout), &d); err != nil {
		t.Fatal(err)
	}
	x := d.Data
	if len(x.Problems) != 3 || len(x.Arms) != 2 || x.Same != 1 || x.Judge.Model != "judge" {
		t.Fatalf("got %s", first.stdout)
	}
	if x.Arms[0].Score != 4 || x.Pairs[0].Delta != 0 {
		t.Errorf("got %s", first.stdout)
	}
	n := 0
	different.Range(func(_, _ any) bool { n++; return true })
	if n > 12 || n == 0 {
		t.Errorf("asked %d things", n)
	}
	closed.Store(true) // who asks now is refused
	if again := judge("--key-env", "KEY", "--json", "--problems", "3"); again.stdout != first.stdout {
		t.Errorf("asked again, or another result: %+v", again)
	}
	closed.Store(false)
	judge("--key-env", "KEY").says(t, "Diversity of completions, 1 to 5, by judge", "4.00", "one − two: +0.00")
	// The record keeps the scores: of the last command, over all problems.
	table := call{}.run("query", "SELECT r.name, e.metric, e.value, e.n_items FROM evals e JOIN runs r ON r.id = e.run "+
		"WHERE e.metric LIKE 'judged%' ORDER BY r.name", "--store", dir, "-o", "csv")
	if want := "name,metric,value,n_items\none,judged_diversity,4,16\ntwo,judged_diversity,4,16\n"; table.stdout != want {
		t.Errorf("recorded %s, want %s", table.stdout, want)
	}
	exp(t, "show", "one", "--stages", "--store", dir).says(t, "eval.judge test", "judgements")
	exp(t, "compare", "one", "--vs", "two", "--allow", "train.optim.lr", "--allow", "eval.final.n", "--k", "1",
		"--store", dir).says(t, "judged", "4.00")
	exp(t, "verify", "one", "--store", dir).succeeds(t)
	judge("--key-env", "KEY").succeeds(t)
	stages := call{}.run("query", "SELECT count(*) FROM stages WHERE kind = 'eval.judge'", "--store", dir, "-o", "csv")
	if !strings.HasSuffix(stages.stdout, "\n4\n") { // two runs, judged on 3 and on 16 problems
		t.Errorf("stages that judged: %s", stages.stdout)
	}
	judge("--key-env", "NONE").refuses(t, 2, "--key-env names NONE")
	judge("--suite", "train").refuses(t, 2, "name an evaluated suite")
	judge("--key-env", "KEY", "--right").refuses(t, 3, "5 right completions")
	judge("--passes", "0").refuses(t, 2, "--passes 0: want at least 1")
	judge("--timeout", "soon").refuses(t, 2, "--timeout soon")
	exp(t, "diversity", "one", "--store", dir).refuses(t, 2, "--url is missing")
}
