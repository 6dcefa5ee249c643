package checkpoint

import (
	"os"
	"sync"

	"exp/kernels"
)

const (
	// slots is the number of pieces in memory: one in use, one being read, the others
	// waiting, so that a small piece between large ones does not stall the disk.
	slots = 4
	// aheadBytes is how far ahead of the reader the system is asked to fetch data from
	// disk: enough to keep any disk busy, small compared with the page cache.
	aheadBytes = 64 << 20
)

// ahead reads the pieces of jobs, in order, before they are taken. Stop it after use.
type ahead struct {
	jobs    []job
	next    int      // index of the next job to take
	used    []uint64 // the piece taken last
	free    chan []uint64
	read    chan piece
	reached chan int64 // bytes of each job read or about to be read
	quit    chan struct{}
	wait    sync.WaitGroup
}

// piece is the memory of one job.
type piece struct {
	words []uint64 // aligned for every type of elements
	err   error
}

// readAhead starts reading.
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

// run reads all jobs as memory allows.
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

// take returns the next job's elements, in host memory that stays valid until the next
// call. It panics if no jobs are left. After an error nothing more can be taken.
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

// stop ends reading.
func (a *ahead) stop() {
	close(a.quit)
	a.wait.Wait()
}

// advise tells the system which file parts come next, in job order (layer 10 may lie before
// layer 2 on disk). The system blocks it while the disk has enough requests, so it has its
// own goroutine.
func (a *ahead) advise() {
	lead := int64(0) // bytes announced to the system and not yet reached
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
		j.data.Visit(j.at(), j.bytes(), func(f *os.File, at, n int64) bool {
			willNeed(f, at, n)
			return true
		})
		lead += j.bytes()
	}
}
