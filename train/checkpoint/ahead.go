package checkpoint

import (
	"sync"

	"exp/kernels"
)

const (
	// slots are the pieces that are in memory: one is used, one read, the others wait, so
	// that a small piece between large ones does not keep the disk waiting.
	slots = 4
	// aheadBytes is how far ahead of what is read the system is asked to bring data from
	// the disk: enough to keep any disk busy, little beside the page cache.
	aheadBytes = 64 << 20
)

// ahead reads the pieces of jobs, in their order, before they are taken. It must be
// stopped.
type ahead struct {
	jobs    []job
	next    int      // of jobs, that is taken next
	used    []uint64 // the piece that was taken last
	free    chan []uint64
	read    chan piece
	reached chan int64 // bytes of each job that is read or about to be
	quit    chan struct{}
	wait    sync.WaitGroup
}

// piece is the memory that a job was read into.
type piece struct {
	words []uint64 // aligned for every type of elements
	err   error
}

// readAhead begins to read.
func readAhead(jobs []job) *ahead {
	a := &ahead{jobs: jobs, free: make(chan []uint64, slots), read: make(chan piece, slots),
		reached: make(chan int64, len(jobs)), quit: make(chan struct{})}
	for range slots {
		a.free <- nil
	}
	a.wait.Go(a.run)
	a.wait.Go(a.advise)
	return a
}

// run reads all jobs, as far as there is memory.
func (a *ahead) run() {
	for _, j := range a.jobs {
		var p piece
		select {
		case p.words = <-a.free:
		case <-a.quit:
			return
		}
		if words := (j.n*j.as.Size() + 7) / 8; len(p.words) < words {
			p.words = make([]uint64, words)
		}
		a.reached <- j.bytes()
		p.err = j.read(p.words)
		a.read <- p
		if p.err != nil {
			return
		}
	}
}

// take returns the next job's elements, in host memory that stays until the next call. It
// panics if there are no more jobs. After an error there is nothing more to take.
func (a *ahead) take() (kernels.Buffer, error) {
	j := a.jobs[a.next]
	if a.next++; a.next > 1 {
		a.free <- a.used
	}
	p := <-a.read
	a.used = p.words
	if p.err != nil {
		return kernels.Buffer{}, p.err
	}
	return view(p.words, j.as, j.n), nil
}

// stop ends the reading.
func (a *ahead) stop() {
	close(a.quit)
	a.wait.Wait()
}

// advise tells the system which parts of files come next, in the order of the jobs: layer
// 10 may lie before layer 2. The system makes it wait while the disk has enough requests,
// so it has a goroutine of its own.
func (a *ahead) advise() {
	lead := int64(0) // bytes that the system knows of and that are not reached
	for _, j := range a.jobs {
		for lead >= aheadBytes {
			select {
			case n := <-a.reached:
				lead -= n
			case <-a.quit:
				return
			}
		}
		select {
		case <-a.quit:
			return
		default:
		}
		willNeed(j.file, j.at(), j.bytes())
		lead += j.bytes()
	}
}
