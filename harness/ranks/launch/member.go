package launch

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"exp/harness/ranks/nccl"
	"exp/harness/run"
	"exp/train/ranks"
)

// Member is a rank's side of a job: its group, and what it leaves in the job's folder for the
// process that launched it.
type Member struct {
	ranks.Group
	dir     string
	timeout time.Duration
	card    Card
	stop    chan struct{}
	ended   chan struct{} // closed after the last sign of life
}

// Join makes a rank a member of the job in dir. It leaves its card, and a sign of life until
// Close. Other ranks may take as long as timeout to answer.
func Join(g ranks.Group, dir string, timeout time.Duration) *Member {
	m := &Member{Group: g, dir: dir, timeout: timeout, card: NewCard(g.Rank()), stop: make(chan struct{}),
		ended: make(chan struct{})}
	m.card.Leave(dir)
	go m.live()
	return m
}

// signOfLife is the time between two signs of life: short enough for a timeout, and at most
// 5 s.
func signOfLife(timeout time.Duration) time.Duration { return min(timeout/4, 5*time.Second) }

// live leaves a sign of life again and again: a number that grows. A process that is stopped,
// or whose machine is gone, leaves none.
func (m *Member) live() {
	defer close(m.ended)
	for n := 0; ; n++ {
		_ = write(lifeFile(m.dir, m.Rank()), []byte(strconv.Itoa(n)))
		select {
		case <-m.stop:
			return
		case <-time.After(signOfLife(m.timeout)):
		}
	}
}

// lifeFile is where a rank leaves its signs of life.
func lifeFile(dir string, rank int) string { return filepath.Join(dir, strconv.Itoa(rank)+".life") }

// Close ends the signs of life. Afterwards nothing is written to the job's folder.
func (m *Member) Close() {
	close(m.stop)
	<-m.ended
}

// At notes where the rank is in its work.
func (m *Member) At(s run.Standing) {
	m.card.Standing = s
	m.card.Leave(m.dir)
}

// Fail notes why the rank ends the job, with the exit code and the advice of the error.
func (m *Member) Fail(err error, code int, help string) {
	m.card.Error, m.card.Code, m.card.Help = err.Error(), code, help
	m.card.Leave(m.dir)
}

// neighbours is how long a rank that waited in vain gives others to say that they did too.
const neighbours = 500 * time.Millisecond

// Exchange implements ranks.Group. Its error names the rank that hangs.
func (m *Member) Exchange(parts []ranks.Part) error { return m.Explain(m.Group.Exchange(parts)) }

// Explain turns the error of an exchange into one that names the rank that hangs, or on the
// first rank, this one. The launching process names the others.
func (m *Member) Explain(err error) error {
	var failed *nccl.Error
	if errors.As(err, &failed) && m.Rank() == 0 {
		card := m.card
		card.Error = err.Error()
		return &LostError{Card: card, Cause: "failed", Last: m.card, Ranks: m.Size()}
	}
	var late *ranks.LateError
	if !errors.As(err, &late) {
		return err
	}
	m.card.WaitsFor = late.Peers
	m.card.Leave(m.dir)
	time.Sleep(neighbours)
	return hungIn(m.dir, m.Size(), m.timeout)
}

// life is the launching process's view of the ranks.
type life struct {
	dir     string
	timeout time.Duration
	last    []string // sign of each rank; empty: none yet
	seen    []time.Time
}

func newLife(dir string, n int, timeout time.Duration) *life {
	return &life{dir: dir, timeout: timeout, last: make([]string, n), seen: make([]time.Time, n)}
}

// silent returns the ranks that have lived once and left no sign of life for the timeout and
// a while longer, in which others may report them.
func (l *life) silent() (list []int) {
	if l.timeout == 0 {
		return nil
	}
	for r := range l.last {
		b, err := os.ReadFile(lifeFile(l.dir, r))
		switch sign := string(b); {
		case err == nil && sign != l.last[r]:
			l.last[r], l.seen[r] = sign, time.Now()
		case l.last[r] != "" && time.Since(l.seen[r]) > l.timeout+signOfLife(l.timeout)+3*neighbours:
			list = append(list, r)
		}
	}
	return list
}
