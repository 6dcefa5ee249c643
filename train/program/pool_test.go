package program

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "pool-program" {
		obey()
		return
	}
	os.Exit(m.Run())
}

// order is a request to the program of these tests.
type order struct {
	ID, Do, File string
}

// obey reads orders as they come and follows each on its own.
func obey() {
	in := bufio.NewScanner(os.Stdin)
	var mu sync.Mutex // of the output
	say := func(format string, args ...any) { mu.Lock(); defer mu.Unlock(); fmt.Printf(format+"\n", args...) }
	var open sync.WaitGroup
	var met atomic.Int32
	for in.Scan() {
		var o order
		if err := json.Unmarshal(in.Bytes(), &o); err != nil {
			panic(err)
		}
		open.Go(func() {
			switch o.Do {
			case "meet": // answers when three are here, and then the last one first
				n := met.Add(1)
				for met.Load() < 3 {
					time.Sleep(time.Millisecond)
				}
				time.Sleep(time.Duration(3-n) * 20 * time.Millisecond)
			case "die", "die once":
				if _, err := os.Stat(o.File); err != nil || o.Do == "die" {
					_ = os.WriteFile(o.File, nil, 0o666)
					time.Sleep(100 * time.Millisecond) // others begin
					fmt.Fprintln(os.Stderr, "no life left")
					os.Exit(3)
				}
			case "slow":
				time.Sleep(400 * time.Millisecond)
			case "die late":
				time.Sleep(450 * time.Millisecond)
				os.Exit(3)
			case "hang":
				time.Sleep(time.Hour)
			case "chat", "other", "nameless":
				time.Sleep(50 * time.Millisecond)
				say(map[string]string{"chat": "thinking …", "other": `{"id": "x"}`, "nameless": `{"score": 1}`}[o.Do])
				return
			case "blank":
				say("\n  ")
			case "flood":
				say(strings.Repeat("x", MaxLine+1))
				return
			case "twice":
				say(`{"id": %q, "pid": %d}`, o.ID, os.Getpid())
				time.Sleep(50 * time.Millisecond)
			case "traceback":
				for _, line := range []string{"Traceback:", "  line 1", "Error: no site"} {
					fmt.Fprintln(os.Stderr, line)
					time.Sleep(5 * time.Millisecond)
				}
			case "closed":
				_ = os.Stdout.Close()
				time.Sleep(time.Hour)
			}
			say(`{"id": %q, "pid": %d}`, o.ID, os.Getpid())
		})
	}
	open.Wait()
}

// lab asks a pool.
type lab struct {
	*Pool
	t    *testing.T
	last atomic.Int64
	log  []string
	file string
}

func newLab(t *testing.T, o PoolOptions) *lab {
	l := &lab{t: t, file: filepath.Join(t.TempDir(), "died")}
	o.Argv = []string{os.Args[0], "pool-program"}
	o.LimitKey, o.Noun, o.Example = "a.limit", "call", `{"id": …}`
	o.Log = func(text string) { l.log = append(l.log, text) }
	if o.Limit == 0 {
		o.Limit = time.Minute
	}
	l.Pool = NewPool(o)
	return l
}

// result is what came of a request.
type result struct {
	pid, tries int
	err        error
}

func (l *lab) ask(ctx context.Context, do string, idle func() time.Duration) (r result) {
	id := fmt.Sprint(l.last.Add(1))
	begin := func() ([]byte, error) {
		r.tries++
		b, err := json.Marshal(order{ID: id, Do: do, File: l.file})
		return append(b, '\n'), err
	}
	read := func(line Line) error {
		var a struct {
			ID  string
			PID int
		}
		if err := json.Unmarshal(line.Text, &a); err != nil || a.ID != id {
			l.t.Errorf("request %s got %s", id, line.Text)
		}
		r.pid = a.PID
		return nil
	}
	r.err = l.Ask(ctx, Request{ID: id, Name: "the call with id " + id, Begin: begin, Read: read, Idle: idle})
	return r
}

// askAll asks all at once.
func (l *lab) askAll(do ...string) []result {
	out := make([]result, len(do))
	var all sync.WaitGroup
	for i, d := range do {
		all.Go(func() { out[i] = l.ask(context.Background(), d, nil) })
	}
	all.Wait()
	return out
}

// close closes the pool, after which nothing of it is left.
func (l *lab) close(goroutines int) {
	l.t.Helper()
	if err := l.Close(); err != nil {
		l.t.Error(err)
	}
	for i := 0; runtime.NumGoroutine() > goroutines; i++ {
		if i == 100 {
			l.t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), goroutines)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestSeveralAtOnce: two processes have three requests each at once, and no more; answers come in any order.
func TestSeveralAtOnce(t *testing.T) {
	before := runtime.NumGoroutine()
	l := newLab(t, PoolOptions{Workers: 2, Each: 3})
	count := map[int]int{}
	for _, r := range l.askAll(slices.Repeat([]string{"meet"}, 6)...) {
		if r.err != nil || r.tries != 1 {
			t.Errorf("%+v", r)
		}
		count[r.pid]++
	}
	for _, r := range l.askAll(slices.Repeat([]string{"ok"}, 40)...) {
		if r.err != nil || r.tries != 1 || count[r.pid] == 0 {
			t.Errorf("%+v", r)
		}
	}
	if len(count) != 2 {
		t.Errorf("requests of processes: %v, want 3 of each of 2", count)
	}
	for pid, n := range count {
		if n != 3 {
			t.Errorf("process %d has %d requests, want 3", pid, n)
		}
	}
	l.close(before)
}

// TestDeath: a process that dies takes all its requests with it; they are asked again, at last alone.
func TestDeath(t *testing.T) {
	before := runtime.NumGoroutine()
	l := newLab(t, PoolOptions{Workers: 1, Each: 4, Retries: 1})
	for i, r := range l.askAll("slow", "slow", "die once", "slow") {
		if r.err != nil || r.tries != 2 {
			t.Errorf("%d: %+v", i, r)
		}
	}
	for i, r := range l.askAll("slow", "slow", "die", "slow") {
		var quiet *Silence
		switch {
		case i == 2 && (!errors.As(r.err, &quiet) || r.err.Error() != "it ended (exit status 3) before it answered; it said: no life left"):
			t.Errorf("the one that is fatal: %+v", r)
		case i != 2 && r.err != nil, r.tries != 2:
			t.Errorf("%d: %+v", i, r)
		}
	}
	l.close(before)
	const again, died = "started again ", "; the last time it ended (exit status 3) while 4 calls were open"
	if got := strings.Join(l.log, "|"); got != "no life left|"+again+"once"+died+"|no life left|"+again+"twice"+died+"|no life left" {
		t.Errorf("log %q", got)
	}
	l = newLab(t, PoolOptions{Workers: 1, Each: 3})
	for i, r := range l.askAll("slow", "die", "slow") {
		if r.tries != 1 || r.err == nil || r.err.Error() != "it ended (exit status 3) while 3 calls were open; it said: no life left" {
			t.Errorf("%d: %+v", i, r)
		}
	}
	l.close(before)
}

// TestLimit: a request over its limit ends its process, which costs the others no try.
func TestLimit(t *testing.T) {
	before := runtime.NumGoroutine()
	l := newLab(t, PoolOptions{Workers: 1, Each: 3, Limit: 300 * time.Millisecond})
	out := make([]result, 2)
	var all sync.WaitGroup
	all.Go(func() { out[0] = l.ask(context.Background(), "hang", nil) })
	never := func() time.Duration { return 0 }
	all.Go(func() { out[1] = l.ask(context.Background(), "slow", never) })
	all.Wait()
	var quiet *Silence
	if !errors.As(out[0].err, &quiet) || quiet.Error() != "it gave no answer within 300ms (a.limit)" || out[0].tries != 1 {
		t.Errorf("the one that hangs: %+v", out[0])
	}
	if out[1].err != nil || out[1].tries != 2 {
		t.Errorf("its neighbour: %+v", out[1])
	}
	// So it has all its tries left.
	l.o.Retries = 1
	all.Go(func() { out[0] = l.ask(context.Background(), "hang", nil) })
	all.Go(func() { out[1] = l.ask(context.Background(), "die late", never) })
	all.Wait()
	if !errors.As(out[0].err, &quiet) || out[0].tries != 2 {
		t.Errorf("the one that hangs: %+v", out[0])
	}
	if !errors.As(out[1].err, &quiet) || out[1].tries != 3 {
		t.Errorf("its neighbour, which dies: %+v", out[1])
	}
	l.o.Retries = 0
	// What Idle says counts.
	asked := time.Now()
	idle := func() time.Duration { return time.Since(asked) - 500*time.Millisecond }
	if r := l.ask(context.Background(), "hang", idle); !errors.As(r.err, &quiet) || time.Since(asked) < 800*time.Millisecond {
		t.Errorf("%+v after %v", r, time.Since(asked))
	}
	l.close(before)
}

// TestLeaving: a request whose context ends is taken from the program, and the others are asked again.
func TestLeaving(t *testing.T) {
	before := runtime.NumGoroutine()
	l := newLab(t, PoolOptions{Workers: 1, Each: 3})
	ctx, leave := context.WithCancel(context.Background())
	out := make([]result, 2)
	var all sync.WaitGroup
	all.Go(func() { out[0] = l.ask(ctx, "hang", nil) })
	time.Sleep(100 * time.Millisecond)
	all.Go(func() { out[1] = l.ask(context.Background(), "slow", nil) })
	time.Sleep(50 * time.Millisecond)
	leave()
	all.Wait()
	if !errors.Is(out[0].err, context.Canceled) || out[1].err != nil || out[1].tries != 2 {
		t.Errorf("%+v", out)
	}
	// One that waits for its turn leaves without a trace.
	ctx, leave = context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer leave()
	for range 3 {
		all.Go(func() { l.ask(context.Background(), "slow", nil) })
	}
	time.Sleep(20 * time.Millisecond)
	if r := l.ask(ctx, "ok", nil); !errors.Is(r.err, context.DeadlineExceeded) || r.tries != 0 {
		t.Errorf("%+v", r)
	}
	all.Wait()
	if r := l.ask(context.Background(), "ok", nil); r.err != nil {
		t.Error(r.err)
	}
	l.close(before)
}

// TestStrayLines: a line that answers no request ends the process, and every request that it has.
func TestStrayLines(t *testing.T) {
	before := runtime.NumGoroutine()
	for do, want := range map[string]string{
		"chat":     `line 1 of its output is not JSON such as {"id": …}; everything else belongs on standard error, while 3 calls are open, with ids 1, 2, 3: thinking …`,
		"other":    `line 1 of its output has another id, "x", while 3 calls are open, with ids 1, 2, 3: {"id": "x"}`,
		"nameless": `line 1 of its output has no id, while 3 calls are open, with ids 1, 2, 3: {"score": 1}`,
	} {
		l := newLab(t, PoolOptions{Workers: 1, Each: 3, Retries: 5})
		for i, r := range l.askAll("hang", do, "hang") {
			if r.err == nil || r.err.Error() != want || r.tries != 1 {
				t.Errorf("%s, request %d: %+v, want %s", do, i, r, want)
			}
		}
		if r := l.ask(context.Background(), "ok", nil); r.err != nil {
			t.Errorf("after %s: %v", do, r.err)
		}
		l.close(before)
	}
	l := newLab(t, PoolOptions{Workers: 1, Each: 8})
	for i, r := range l.askAll("hang", "hang", "hang", "hang", "hang", "hang", "chat") {
		if r.err == nil || !strings.Contains(r.err.Error(), "while 7 calls are open, with ids 1, 2, 3, 4, 5 and 2 more: thinking") {
			t.Errorf("request %d: %+v", i, r)
		}
	}
	l.close(before)
	l = newLab(t, PoolOptions{Workers: 1, Each: 2, Retries: 5})
	if r := l.ask(context.Background(), "blank", nil); r.err != nil {
		t.Errorf("lines without text: %v", r.err)
	}
	if r := l.ask(context.Background(), "flood", nil); r.err == nil || r.err.Error() != "line 4 of its output: longer than 1048576 bytes" || r.tries != 1 {
		t.Errorf("a line without end: %+v", r)
	}
	if x := l.slots.all[0].x; x.ask(&Request{ID: "late"}, nil) != nil {
		t.Error("a process that has ended takes a request")
	}
	l.close(before)
	// If no request is open, the next one hears of it.
	l = newLab(t, PoolOptions{Workers: 1, Each: 2})
	if r := l.ask(context.Background(), "twice", nil); r.err != nil {
		t.Error(r.err)
	}
	time.Sleep(300 * time.Millisecond)
	if r := l.ask(context.Background(), "ok", nil); r.err == nil || !strings.HasPrefix(r.err.Error(), "line 2 of its output answers the call with id 1 again, while no call is open: ") {
		t.Errorf("%+v", r)
	}
	if r := l.ask(context.Background(), "ok", nil); r.err != nil {
		t.Error(r.err)
	}
	l.close(before)
}

// TestManyDeaths: a program that dies all the time is given up, and one that answers in between is not.
func TestManyDeaths(t *testing.T) {
	l := newLab(t, PoolOptions{Workers: 2, Each: 1, Retries: 1, Deaths: 4})
	// Three requests die twice, which counts once: three times before an answer, and again after it.
	for range 2 {
		for range 3 {
			if r := l.ask(context.Background(), "die", nil); r.err == nil || strings.Contains(r.err.Error(), "further tries") || r.tries != 2 {
				t.Fatalf("%+v", r)
			}
		}
		if r := l.ask(context.Background(), "ok", nil); r.err != nil {
			t.Fatalf("%+v", r)
		}
	}
	// The process that has answered dies and does not count: the first request counts by its second try.
	const want = "it died or fell silent 4 times, further tries not counted, and no call ended in between; the last time it ended (exit status 3) before it answered; it said: no life left"
	for i, tries := range []int{2, 2, 2, 1, 0} {
		r := l.ask(context.Background(), "die", nil)
		var quiet *Silence
		if broken := r.err != nil && r.err.Error() == want && !errors.As(r.err, &quiet); broken != (i > 2) || r.tries != tries {
			t.Errorf("request %d: %+v", i, r)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	// A process that has answered works, however it ends.
	l = newLab(t, PoolOptions{Workers: 1, Each: 1, Deaths: 1})
	for i, do := range []string{"ok", "die", "die"} {
		r := l.ask(context.Background(), do, nil)
		broken := r.err != nil && strings.HasPrefix(r.err.Error(), "it died or fell silent 1 times")
		if broken != (i == 2) || r.tries != 1 || (r.err == nil) != (i == 0) {
			t.Errorf("request %d: %+v", i, r)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	// A process that dies with several requests counts once, and each of those that then die alone.
	l = newLab(t, PoolOptions{Workers: 1, Each: 3, Retries: 1, Deaths: 3})
	broken := 0
	for i, r := range l.askAll("die", "die", "die") {
		if r.err == nil {
			t.Errorf("request %d: %+v", i, r)
		} else if strings.HasPrefix(r.err.Error(), "it died or fell silent 3 times") {
			broken++
		}
	}
	if broken != 2 {
		t.Errorf("%d requests learned that the program is broken, want 2", broken)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestSilentProgram: a program that gives no answer within the limit is given up as well.
func TestSilentProgram(t *testing.T) {
	l := newLab(t, PoolOptions{Workers: 1, Each: 2, Deaths: 2, Limit: 100 * time.Millisecond})
	for i, want := range []string{"it gave no answer within 100ms (a.limit)", "it died or fell silent 2 times, further tries not counted"} {
		if r := l.ask(context.Background(), "hang", nil); r.err == nil || !strings.HasPrefix(r.err.Error(), want) {
			t.Errorf("request %d: %+v, want %s", i, r, want)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestDeathsOfMany: an answer forgets deaths of processes with several requests.
func TestDeathsOfMany(t *testing.T) {
	l := newLab(t, PoolOptions{Workers: 1, Each: 2, Deaths: 3})
	for range 2 {
		for range 2 {
			for i, r := range l.askAll("die", "die") {
				if r.err == nil || !strings.HasPrefix(r.err.Error(), "it ended (exit status 3) while 2 calls were open") {
					t.Errorf("request %d: %+v", i, r)
				}
			}
		}
		if r := l.ask(context.Background(), "ok", nil); r.err != nil {
			t.Fatalf("%+v", r)
		}
		l.slots.all[0].x.end(0) // which has answered, and would not count
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	// Each of them counts, also in further tries of the same requests.
	l = newLab(t, PoolOptions{Workers: 1, Each: 2, Deaths: 3, Retries: 5})
	for i, r := range l.askAll("die", "die") {
		if r.tries != 3 || r.err == nil || !strings.HasPrefix(r.err.Error(), "it died or fell silent 3 times") {
			t.Errorf("request %d: %+v", i, r)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestLog: lines that come together are one text, of bounded length.
func TestLog(t *testing.T) {
	l := newLab(t, PoolOptions{Workers: 1, Each: 1})
	for range 2 {
		if r := l.ask(context.Background(), "traceback", nil); r.err != nil {
			t.Error(r.err)
		}
		time.Sleep(2 * gather)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	const one = "Traceback:\n  line 1\nError: no site"
	if !slices.Equal(l.log, []string{one, one}) {
		t.Errorf("log %q", l.log)
	}
	many := []string{"Traceback:"}
	for range 100 {
		many = append(many, strings.Repeat("é", 100))
	}
	got := text(append(many, "Error: no site"))
	if len(got) > maxText+10 || !strings.HasPrefix(got, "Traceback:\né") || !strings.HasSuffix(got, "é\nError: no site") || strings.ToValidUTF8(got, "") != got {
		t.Errorf("%d bytes, %q", len(got), got)
	}
}

// TestRestarts: the 1st, 2nd and 4th restart are told, with the reason; what has no fault of the program's is not.
func TestRestarts(t *testing.T) {
	l := newLab(t, PoolOptions{Workers: 1, Each: 1, Limit: 200 * time.Millisecond})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	l.ask(ctx, "hang", nil) // stopped, for no fault of its own
	for _, do := range []string{"die", "die", "ok", "die", "hang", "ok"} {
		l.ask(context.Background(), do, nil)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	const died, told = "no life left", "the last time it ended (exit status 3) before it answered"
	want := []string{died, "started again once; " + told, died, "started again twice; " + told, died,
		"started again 4 times; the last time it gave no answer within 200ms (a.limit)"}
	if !slices.Equal(l.log, want) {
		t.Errorf("log %q, want %q", l.log, want)
	}
}

// A program that closes its output but keeps running is ended after a second, in which it may finish its work.
func TestClosedOutput(t *testing.T) {
	before := runtime.NumGoroutine()
	l := newLab(t, PoolOptions{Workers: 1, Each: 2})
	asked, ended := time.Now(), make(chan time.Time, 1)
	go func() {
		r := l.ask(context.Background(), "closed", nil)
		ended <- time.Now()
		if r.err == nil || r.err.Error() != "it closed its output before it answered" {
			t.Errorf("%+v", r)
		}
	}()
	over := func(s *slot) bool { s.mu.Lock(); defer s.mu.Unlock(); return s.x != nil && s.x.isOver() }
	for !over(l.slots.all[0]) {
		time.Sleep(time.Millisecond)
	}
	// The next request waits for its end.
	r := l.ask(context.Background(), "ok", nil)
	if answered := time.Now(); r.err != nil || answered.Before(<-ended) || answered.Sub(asked) < endGrace {
		t.Errorf("after %v: %+v", answered.Sub(asked), r)
	}
	l.close(before)
}

// TestSlots: requests get the emptiest slot in order; one that wants a slot alone does not wait for ever.
func TestSlots(t *testing.T) {
	s := &slots{each: 2, all: []*slot{{}, {}}}
	ctx := context.Background()
	take := func(alone bool) *slot {
		x, err := s.take(ctx, alone)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	a, b := take(false), take(false)
	if a == b || a != s.all[0] {
		t.Error("the second request has the first one's slot")
	}
	queued := func(n int) {
		for {
			s.mu.Lock()
			have := len(s.queue)
			s.mu.Unlock()
			if have == n {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	got := make(chan *slot)
	go func() { got <- take(true) }()
	queued(1)
	next := make(chan *slot)
	go func() { next <- take(false) }() // waits behind, though there is room
	queued(2)
	s.give(b)
	if x := <-got; x != b || !x.alone {
		t.Error("alone in another slot than the empty one")
	}
	if x := <-next; x != a {
		t.Error("the next one is in the slot of one that is alone")
	}
	// Nobody joins one that is alone, and one that leaves the queue lets the next one in.
	waiting, leave := context.WithCancel(ctx)
	left := make(chan error)
	go func() { _, err := s.take(waiting, true); left <- err }()
	queued(1)
	go func() { next <- take(false) }()
	queued(2)
	s.give(a)
	queued(2)
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if x := <-next; x != a {
		t.Error("the next one is in the slot of one that is alone")
	}
	go func() { next <- take(false) }()
	queued(1)
	s.give(b)
	if x := <-next; x != b {
		t.Error("the slot of one that was alone stays empty")
	}
	s.give(a)
	s.give(a)
	s.give(b)
	if x := take(false); x.open != 1 || x.alone || len(s.queue) != 0 {
		t.Errorf("%+v", x)
	}
	// One that leaves as it gets a slot gives it back.
	for range 100 {
		if x, err := s.take(waiting, false); err == nil {
			s.give(x)
		}
	}
	if a.open+b.open != 1 {
		t.Errorf("%d slots are in use, want 1", a.open+b.open)
	}
}

// TestWaiting: errors name requests in the order of their numbers.
func TestWaiting(t *testing.T) {
	x := &exchange{p: &Pool{o: PoolOptions{Noun: "call"}}, open: map[string]*asked{}}
	for _, id := range []string{"10", "9", "100", "2"} {
		x.open[id] = &asked{}
	}
	if got, want := x.waiting(), "4 calls are open, with ids 2, 9, 10, 100"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTimes(t *testing.T) {
	for n, want := range map[int]string{1: "once", 2: "twice", 4: "4 times"} {
		if got := Times(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
