package serve

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"exp/experiments/store"
)

// served is a running server of a study, with the address to open.
func served(t *testing.T, s *study) (origin, first string) {
	t.Helper()
	reader, err := store.Open(s.db.Dir(), store.Options{ReadOnly: true})
	s.must(err)
	server, err := New(Options{DB: reader, Clock: func() time.Time { return now }})
	s.must(err)
	l, err := Listen("", false)
	s.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		reader.Close()
	})
	return "http://" + l.Addr().String(), server.Address(l)
}

// nineArms adds nine arms of three seeds.
func nineArms(s *study) {
	for i, algo := range []string{"ppo", "grpo", "dapo", "flowrl", "gdpo", "cispo", "gspo", "rloo", "reinforce"} {
		for seed := range int64(3) {
			s.run("sweep-"+algo, algo, seed, 0.1+0.05*float64(i))
		}
	}
}

// Every page at two widths, light and dark: no error in the console, no request to
// another host, nothing wider than the screen. EXP_PICTURES=DIR keeps pictures.
func TestBrowserPages(t *testing.T) {
	c := startChromium(t)
	s := two(t)
	nineArms(s)
	origin, first := served(t, s)
	flow, ppo, live := s.idOf("flow", 0), s.idOf("ppo&co", 0), s.idOf("live", 0)
	p := c.open(1280, 800, false)
	p.load(first)
	p.until(`location.href == "` + origin + `/"`)
	both := "sel=flow&sel=" + url.QueryEscape("ppo&co")
	for _, page := range []struct{ name, path string }{
		{"list", "/"}, {"groups", "/?group=algo&F=tag+%3D+sweep"}, {"filter", "/?F=algo+%3D"}, {"live", "/run/" + live}, {"run", "/run/" + flow},
		{"completions", "/run/" + flow + "/completions"}, {"lineage", "/run/" + flow + "/lineage"},
		{"nine", "/curves?sel=" + url.QueryEscape(`name ~ "sweep-*"`)}, {"curves", "/curves?" + both},
		{"compare", "/compare?" + both}, {"refused", "/compare?sel=flow&sel=short"}, {"report", "/report?" + both},
		{"problems", "/problems?sel=" + flow + "&sel=" + ppo}, {"problem", "/problems?sel=" + flow + "&sel=" + ppo + "&item=" + url.QueryEscape("3,4,5=16")},
		{"benchmarks", "/benchmarks"}, {"help", "/help"},
	} {
		for _, width := range []int{1280, 400} {
			for _, dark := range []bool{false, true} {
				if os.Getenv("EXP_PICTURES") == "" && dark != (width < 600) {
					continue // half of them find the faults
				}
				p.resize(width, 800, dark)
				p.load(origin + page.path)
				scheme := map[bool]string{false: "light", true: "dark"}[dark]
				p.picture(fmt.Sprintf("%s-%d-%s", page.name, width, scheme))
				var wide int
				p.eval("document.documentElement.scrollWidth", &wide)
				if wide > width {
					t.Errorf("%s is %d wide on a screen of %d", page.path, wide, width)
				}
				p.check(origin)
			}
		}
	}
}

// The ids of problems come from files of others: long ones do not widen a page, and controls are shown.
func TestBrowserProblemIDs(t *testing.T) {
	s := newStudy(t)
	run, _, st := s.begin("ids", "grpo", 0, 1)
	id := strings.Repeat("L", 300) + "\u202e"
	sample := store.Sample{Stage: st.Home, Scope: "train", Step: 1, Item: id, OutTokens: 1, Reward: 1}
	s.must(s.db.AddSamples(context.Background(), []store.Sample{sample}, nil))
	s.must(s.db.AddSamples(context.Background(), []store.Sample{{Stage: st.Home, Scope: "train", Step: 1,
		Item: "short", OutTokens: 1, Reward: 1}}, nil))
	rid := run.RID.String()[:selDigits]
	paths := []string{"/run/" + rid + "/completions?suite=train", "/problems?suite=train&sel=" + rid, "/run/" + rid}
	site := newSite(t, s)
	for _, path := range paths[:1] {
		if body := site.get(path); strings.Contains(body, "\u202e") || !strings.Contains(body, `L\u202e</a>`) {
			t.Errorf("%s: the direction of text changes", path)
		}
	}
	c := startChromium(t)
	origin, first := served(t, s)
	p := c.open(400, 800, false)
	p.load(first)
	p.until(`location.href == "` + origin + `/"`)
	for _, path := range paths {
		p.load(origin + path)
		var wide int
		p.eval("document.documentElement.scrollWidth", &wide)
		if wide > 400 {
			t.Errorf("%s is %d wide on a screen of 400", path, wide)
		}
	}
}

// A page follows its run without being loaded again, and keeps what the reader did.
func TestBrowserLive(t *testing.T) {
	c := startChromium(t)
	s := two(t)
	origin, first := served(t, s)
	runs, err := s.db.Runs(context.Background(), store.RunQuery{Name: "live"})
	s.must(err)
	attempts, err := s.db.Attempts(context.Background(), runs[0].ID)
	s.must(err)
	p := c.open(1280, 800, false)
	p.load(first)
	p.load(origin + "/run/" + s.idOf("live", 0))
	p.until(`document.querySelector("#pulse").matches(".on")`)
	p.eval(`window.same = true; document.querySelector("#config").open = true`, nil)
	s.steps(runs[0], attempts[0].ID, 61, 70, 0.25)
	p.until(`document.querySelector("#title").textContent.includes("step 70 of 200")`)
	p.until(`document.querySelector("#phases h2").textContent.includes("70")`)
	p.until(`window.same && document.querySelector("#config").open`)

	// The values under the pointer.
	var at struct{ X, Y, Width float64 }
	p.eval(`(() => { const r = document.querySelector(".plot").getBoundingClientRect(); return {X: r.x, Y: r.y, Width: r.width} })()`, &at)
	p.mouse("mouseMoved", at.X+at.Width/2, at.Y+60, 0)
	p.until(`document.querySelector(".values")?.textContent.includes("training step")`)
	p.picture("values-1280-light")
	// A part of the steps, by dragging, and all again.
	p.mouse("mousePressed", at.X+at.Width/4, at.Y+60, 1)
	p.mouse("mouseMoved", at.X+at.Width/2, at.Y+60, 1)
	p.mouse("mouseReleased", at.X+at.Width/2, at.Y+60, 0)
	p.until(`new URL(location).searchParams.get("from") > 10 && new URL(location).searchParams.get("to") < 40`)
	p.press("0")
	p.until(`!new URL(location).searchParams.has("from")`)
	p.check(origin)
}

func TestBrowserKeys(t *testing.T) {
	c := startChromium(t)
	origin, first := served(t, two(t))
	p := c.open(1280, 800, false)
	p.load(first)
	for _, key := range []string{"j", "x", "j", "j", "x"} {
		p.press(key)
	}
	p.until(`document.querySelectorAll("input:checked").length == 2 && document.querySelectorAll(".here").length == 1`)
	p.press("/")
	p.until(`document.activeElement.id == "filter"`)
	p.press("j")
	p.until(`document.activeElement.value == "j"`)
	p.press("Escape")
	p.eval(`document.activeElement.value = ""`, nil)
	p.press("C")
	p.until(`location.pathname == "/curves" && new URL(location).searchParams.getAll("sel").length == 2`)
	for _, to := range []struct{ key, path string }{{"b", "/benchmarks"}, {"m", "/compare"}, {"p", "/problems"}, {"?", "/help"}, {"r", "/"}} {
		p.press(to.key)
		p.until(`location.pathname == "` + to.path + `"`)
	}
	p.press("j")
	p.press("Enter")
	p.until(`location.pathname.startsWith("/run/")`)
	p.check(origin)
}

// Reading needs no script.
func TestBrowserWithoutScript(t *testing.T) {
	c := startChromium(t)
	s := two(t)
	origin, first := served(t, s)
	p := c.open(1280, 800, false)
	p.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true})
	p.load(first)
	p.load(origin + "/run/" + s.idOf("flow", 0))
	var tree struct {
		Nodes []struct{ Name struct{ Value any } }
	}
	c.decode(p.call("Accessibility.getFullAXTree", none{}), &tree)
	var names []string
	for _, n := range tree.Nodes {
		if text, ok := n.Name.Value.(string); ok {
			names = append(names, text)
		}
	}
	all := strings.Join(names, "\n")
	for _, want := range []string{"flow#0", "Line chart of", "Sampling", "countdown/test", "Skip to the content"} {
		if !strings.Contains(all, want) {
			t.Errorf("a screen reader does not read %q", want)
		}
	}
	p.check(origin)
}
