package serve

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// chromium is a headless browser, controlled over the pipes of its DevTools protocol.
type chromium struct {
	t    *testing.T
	in   io.Writer
	mu   sync.Mutex
	next int
	wait map[int]chan reply
	tabs map[string]*tab // by session
}

// reply is a message from the browser: an answer or an event.
type reply struct {
	ID      int             `json:"id"`
	Method  string          `json:"method"`
	Session string          `json:"sessionId"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// startChromium starts the browser, or skips the test without one.
func startChromium(t *testing.T) *chromium {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on this machine; Debian has it as a package")
	}
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	theirs, ours := pipe(t)
	back, answers := pipe(t)
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
		"--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	cmd.ExtraFiles = []*os.File{theirs, answers}
	if err := cmd.Start(); err != nil {
		t.Skipf("chromium does not start: %v", err)
	}
	theirs.Close()
	answers.Close()
	c := &chromium{t: t, in: ours, wait: map[int]chan reply{}, tabs: map[string]*tab{}}
	go c.read(back)
	t.Cleanup(func() {
		ours.Close() // the browser ends when its pipe does
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		select {
		case <-done:
		case <-time.After(5 * time.Second):
			cmd.Process.Kill()
			<-done
		}
		back.Close()
	})
	return c
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

// read hands answers to those who wait, and events to their tabs.
func (c *chromium) read(back io.Reader) {
	lines := bufio.NewReader(back)
	for {
		text, err := lines.ReadBytes(0)
		if err != nil {
			return
		}
		var m reply
		if json.Unmarshal(bytes.TrimRight(text, "\x00"), &m) != nil {
			continue
		}
		c.mu.Lock()
		answer, page := c.wait[m.ID], c.tabs[m.Session]
		delete(c.wait, m.ID)
		c.mu.Unlock()
		switch {
		case m.ID != 0 && answer != nil:
			answer <- m
		case page != nil:
			page.event(m)
		}
	}
}

// call sends a command and returns its result.
func (c *chromium) call(session, method string, params any) json.RawMessage {
	c.t.Helper()
	m := c.ask(session, method, params)
	if m.Error != nil {
		c.t.Fatalf("%s: %s", method, m.Error.Message)
	}
	return m.Result
}

// ask sends a command and returns the answer, which may be an error.
func (c *chromium) ask(session, method string, params any) reply {
	c.t.Helper()
	c.mu.Lock()
	c.next++
	id, answer := c.next, make(chan reply, 1)
	c.wait[id] = answer
	c.mu.Unlock()
	message := map[string]any{"id": id, "method": method, "params": params}
	if session != "" {
		message["sessionId"] = session
	}
	text, err := json.Marshal(message)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.in.Write(append(text, 0)); err != nil {
		c.t.Fatalf("chromium has ended: %v", err)
	}
	select {
	case m := <-answer:
		return m
	case <-time.After(30 * time.Second):
		c.t.Fatalf("%s: no answer", method)
	}
	return reply{}
}

// tab is an open page and what went wrong in it.
type tab struct {
	c       *chromium
	session string

	mu       sync.Mutex
	problems []string // errors of scripts, of the console and of the policy
	asked    []string // addresses that it requested
}

type none = struct{}

// open opens an empty page of a size, dark or light.
func (c *chromium) open(width, height int, dark bool) *tab {
	c.t.Helper()
	var target struct{ TargetID string }
	c.decode(c.call("", "Target.createTarget", map[string]any{"url": "about:blank"}), &target)
	var attached struct{ SessionID string }
	c.decode(c.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}), &attached)
	p := &tab{c: c, session: attached.SessionID}
	c.mu.Lock()
	c.tabs[p.session] = p
	c.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		p.call(domain+".enable", none{})
	}
	p.resize(width, height, dark)
	return p
}

func (p *tab) resize(width, height int, dark bool) {
	p.c.t.Helper()
	p.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1,
		"mobile": width < 600})
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{
		map[string]string{"name": "prefers-color-scheme", "value": scheme}}})
}

func (c *chromium) decode(text json.RawMessage, v any) {
	c.t.Helper()
	if err := json.Unmarshal(text, v); err != nil {
		c.t.Fatal(err)
	}
}

func (p *tab) call(method string, params any) json.RawMessage {
	p.c.t.Helper()
	return p.c.call(p.session, method, params)
}

func (p *tab) event(m reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch m.Method {
	case "Network.requestWillBeSent":
		var e struct{ Request struct{ URL string } }
		if json.Unmarshal(m.Params, &e) == nil {
			p.asked = append(p.asked, e.Request.URL)
		}
	case "Runtime.exceptionThrown", "Log.entryAdded":
		p.problems = append(p.problems, string(m.Params))
	case "Runtime.consoleAPICalled":
		var e struct{ Type string }
		if json.Unmarshal(m.Params, &e) == nil && (e.Type == "error" || e.Type == "warning") {
			p.problems = append(p.problems, string(m.Params))
		}
	}
}

// load opens an address and waits until it and its scripts are there.
func (p *tab) load(address string) {
	p.c.t.Helper()
	p.eval("window.old = true", nil)
	p.call("Page.navigate", map[string]any{"url": address})
	p.until("!window.old")
}

// eval returns the value of an expression, promises awaited.
func (p *tab) eval(expression string, v any) {
	p.c.t.Helper()
	var out struct {
		Result struct {
			Value       json.RawMessage
			Description string
		}
		ExceptionDetails *json.RawMessage
	}
	p.c.decode(p.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true,
		"awaitPromise": true}), &out)
	if out.ExceptionDetails != nil {
		p.c.t.Fatalf("%s: %s", expression, *out.ExceptionDetails)
	}
	if v != nil && out.Result.Value != nil {
		p.c.decode(out.Result.Value, v)
	}
}

// until waits until the page is loaded and an expression is true. On the way from one
// page to another there is nothing to ask.
func (p *tab) until(expression string) {
	p.c.t.Helper()
	var out struct{ Result struct{ Value bool } }
	for range 300 {
		m := p.c.ask(p.session, "Runtime.evaluate", map[string]any{
			"expression": `document.readyState == "complete" && !!(` + expression + `)`, "returnByValue": true})
		if m.Error == nil && json.Unmarshal(m.Result, &out) == nil && out.Result.Value {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	var where string
	p.eval("location.href", &where)
	p.c.t.Fatalf("never true at %s: %s", where, expression)
}

// press presses and releases a key.
func (p *tab) press(key string) {
	p.c.t.Helper()
	text := ""
	if len(key) == 1 {
		text = key
	}
	p.call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": key, "text": text})
	p.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key})
}

// mouse moves, presses or releases the pointer.
func (p *tab) mouse(kind string, x, y float64, buttons int) {
	p.c.t.Helper()
	p.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "buttons": buttons,
		"clickCount": 1})
}

// picture writes a picture of the whole page to the folder that EXP_PICTURES names, if
// there is one.
func (p *tab) picture(name string) {
	p.c.t.Helper()
	dir := os.Getenv("EXP_PICTURES")
	if dir == "" {
		return
	}
	var shot struct{ Data string }
	p.c.decode(p.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}), &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s.png", name)), png, 0o666)
	}
	if err != nil {
		p.c.t.Fatal(err)
	}
}

// check fails the test for what went wrong in the page, and for requests to others than
// the server.
func (p *tab) check(server string) {
	p.c.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		p.c.t.Errorf("the console says %s", problem)
	}
	for _, address := range p.asked {
		if len(address) < len(server) || address[:len(server)] != server {
			p.c.t.Errorf("a request to %s", address)
		}
	}
	p.problems, p.asked = nil, nil
}
