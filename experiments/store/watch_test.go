package store

import (
	"context"
	"testing"
	"time"
)

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	writer := openAt(t, dir, Options{Create: true})
	run := ensure(t, writer, newRun("x", 0))
	reader, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	ctx, cancel := context.WithCancel(context.Background())
	changes, ended := make(chan bool, 100), make(chan error)
	go func() {
		ended <- reader.Watch(ctx, time.Millisecond, func() { changes <- true })
	}()
	time.Sleep(20 * time.Millisecond)
	if len(changes) > 0 {
		t.Error("a change before any write")
	}
	for range 2 {
		seen := false
		for end := time.Now().Add(10 * time.Second); !seen && time.Now().Before(end); {
			// Watch may begin late, after the first write.
			if err := writer.AddNote(ctx, run.ID, "seen?"); err != nil {
				t.Fatal(err)
			}
			select {
			case <-changes:
				seen = true
			case <-time.After(time.Second):
			}
		}
		if !seen {
			t.Fatal("writes go unseen")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
