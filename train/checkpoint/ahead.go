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
	jobs []job
	next int      // of jobs, that is taken next
	used []uint64 // the piece that was taken last
	free chan []uint64
	read chan piece
	quit chan struct{}
	wait sync.WaitGroup
}

// piece is the memory that a job was read into.
type piece struct {
	words []uint64 // aligned for every type of elements
	err   error
}

// readAhead begins to read.
func readAhead(jobs []job) *ahead {
	a := &ahead{jobs: jobs, free: make(chan []uint64, slots), read: make(chan piece, slots), quit: make(chan struct{})}
	for range slots {
		a.free <- nil
	}
	a.wait.Go(a.run)
	return a
}

// run reads all jobs, as far as there is memory.
func (a *ahead) run() {
	told := adviser{jobs: a.jobs}
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
		told.reach(j)
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

// adviser tells the system which parts of files come next. That is not how they lie
// there: layer 10 may lie before layer 2.
type adviser struct {
	jobs []job
	told int   // jobs that the system knows of
	lead int64 // bytes of these that were not reached
}

// reach says that a job, the next one, is about to be read.
func (a *adviser) reach(j job) {
	for a.told < len(a.jobs) && a.lead < aheadBytes {
		next := a.jobs[a.told]
		willNeed(next.file, next.at(), next.bytes())
		a.told, a.lead = a.told+1, a.lead+next.bytes()
	}
	a.lead -= j.bytes()
}
