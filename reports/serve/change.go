package serve

import (
	"encoding/json"
	"fmt"
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
// the run is doing (text/event-stream).
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
	event, data := "open", []byte("{}")
	rid, err := s.watched(r)
	look := time.NewTicker(activityEvery)
	defer look.Stop()
	if err != nil {
		look.Stop()
	}
	var shown activityShown
	for {
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data); err != nil {
			return
		}
		if stream.SetWriteDeadline(time.Now().Add(2*heartbeat)) != nil || stream.Flush() != nil {
			return
		}
		for event = ""; event == ""; {
			select {
			case <-r.Context().Done():
				return
			case <-changed:
				event, data = "change", []byte("{}")
			case <-beat.C:
				event, data = "beat", []byte("{}")
			case <-look.C:
				if now := s.activityOf(rid); now != shown {
					event, shown = "activity", now
					data, _ = json.Marshal(now) // a text and numbers
				}
			}
		}
	}
}

// watched returns the run whose page asks for changes.
func (s *Server) watched(r *http.Request) (ident.Digest, error) {
	run, err := s.oneRun(r.Context(), r.URL.Query().Get("run"))
	return run.RID, err
}
