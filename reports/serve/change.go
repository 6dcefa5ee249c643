package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"exp/experiments/ident"
)

// changes tells open pages that the store has changed.
type changes struct {
	mu        sync.Mutex
	listeners map[chan struct{}]bool
}

// tell tells every open page, except pages that have not yet acted on the last change.
func (c *changes) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ch := range c.listeners {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// listen returns a channel of changes, nil if too many listen; leave ends it.
func (c *changes) listen() (ch chan struct{}, leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.listeners) == mostWatches {
		return nil, nil
	}
	ch = make(chan struct{}, 1)
	c.listeners[ch] = true
	return ch, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.listeners, ch)
	}
}

// heartbeat is how often the server tells an open page that it is alive: ages go on, and a run
// that was killed changes its status without writing.
const heartbeat = 20 * time.Second

// sendChanges sends an event for each change of the store, and for the page of a run (?run=ID) what
// the run is doing and that a stage before training, which the store records when it ends, took a step
// (text/event-stream).
func (s *Server) sendChanges(w http.ResponseWriter, r *http.Request) {
	changed, leave := s.changes.listen()
	if changed == nil {
		refuse(w, http.StatusServiceUnavailable, "Too many pages are open.")
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	stream := http.NewResponseController(w)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	messages := eventOf("open", nil)
	rid, err := s.watched(r)
	look := time.NewTicker(activityEvery)
	defer look.Stop()
	if err != nil {
		look.Stop()
	}
	var shown activityShown
	steps := s.db.LiveStepsBytes(rid)
	for {
		if _, err := io.WriteString(w, messages); err != nil {
			return
		}
		if stream.SetWriteDeadline(time.Now().Add(2*heartbeat)) != nil || stream.Flush() != nil {
			return
		}
		for messages = ""; messages == ""; {
			select {
			case <-r.Context().Done():
				return
			case <-changed:
				messages = eventOf("change", nil)
			case <-beat.C:
				messages = eventOf("beat", nil)
			case <-look.C:
				if now := s.activityOf(rid); now != shown {
					messages, shown = eventOf("activity", now), now
				}
				if n := s.db.LiveStepsBytes(rid); n != steps {
					messages, steps = messages+eventOf("change", nil), n
				}
			}
		}
	}
}

// eventOf writes an event of a stream; without data, it has an empty object.
func eventOf(name string, data any) string {
	text := []byte("{}")
	if data != nil {
		text, _ = json.Marshal(data) // a text and numbers
	}
	return fmt.Sprintf("event: %s\ndata: %s\n\n", name, text)
}

// watched returns the run whose page asks for changes.
func (s *Server) watched(r *http.Request) (ident.Digest, error) {
	run, err := s.oneRun(r.Context(), r.URL.Query().Get("run"))
	return run.RID, err
}
