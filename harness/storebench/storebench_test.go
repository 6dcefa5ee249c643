package storebench

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// told notes what a watcher is told.
type told struct {
	starts, ends int
}

func (w *told) Start(string, int)           { w.starts++ }
func (w *told) Done(int)                    {}
func (w *told) End(float64, string, string) { w.ends++ }

func small() Options { return Options{Runs: 12, Arms: 2, Steps: 10, Long: 5000, Repeat: 1} }

func TestRun(t *testing.T) {
	o := small()
	o.Dir = t.TempDir()
	var commands [][]string
	o.Exec = func(_ context.Context, args ...string) (time.Duration, error) {
		commands = append(commands, args)
		return 7 * time.Millisecond, nil
	}
	drawn := 0
	o.Draw = func() error { drawn++; return nil }
	w := &told{}
	r, err := Run(context.Background(), o, w)
	if err != nil {
		t.Fatal(err)
	}
	// 4 runs of 10 steps of 60 metrics, one of 5000 points, 7 of 300.
	if r.Points != 2400+5000+2100 || r.Runs != 12 || r.Bytes == 0 || w.starts != w.ends || drawn != 2 {
		t.Errorf("%+v; %d starts, %d ends, %d drawn", r, w.starts, w.ends, drawn)
	}
	for _, f := range r.Figures {
		if !(f.Value > 0) || f.Met != (f.AtLeast && f.Value >= f.Goal || !f.AtLeast && f.Value <= f.Goal) {
			t.Errorf("%+v", f)
		}
		if strings.HasPrefix(f.Item, "ls") && f.CPU != 7 || strings.HasPrefix(f.Item, "import") && !(f.CPU > 0) {
			t.Errorf("processor time: %+v", f)
		}
	}
	last := commands[len(commands)-1]
	if last[0] != "report" || last[1] != "flowrl#0" || last[2] != "flowrl#1" || last[3] != "ppo#0" {
		t.Errorf("commands %q", last)
	}
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Whatever goes wrong, the folder is removed.
func TestRunFails(t *testing.T) {
	bad := errors.New("no such program")
	o := small()
	o.Dir = t.TempDir()
	o.Exec = func(context.Context, ...string) (time.Duration, error) { return 0, bad }
	if _, err := Run(context.Background(), o, &told{}); !errors.Is(err, bad) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, o, &told{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	huge := o
	huge.Long = 1 << 50
	var space *SpaceError
	if _, err := Run(context.Background(), huge, &told{}); !errors.As(err, &space) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("no room: %v", err)
	}
	o.Runs = 3
	if _, err := Run(context.Background(), o, &told{}); err == nil {
		t.Error("too few runs were accepted")
	}
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestDefaultPoints(t *testing.T) {
	if n := DefaultOptions().Points(); n < 9_900_000 || n > 10_100_000 {
		t.Errorf("%d points, want ten million", n)
	}
}
