package train

import (
	"encoding/json"
	"fmt"

	"exp/kernels"
	"exp/train/ranks"
)

// Cut is a buffer that the ranks hold in pieces. The first rank reads and writes it within
// WithBuffers, so a checkpoint holds whole buffers whatever the number of ranks.
type Cut struct {
	group ranks.Group // of the run
	be    kernels.Backend
	held  held
	n     int
	own   kernels.Buffer // the pieces are parts of it
	index int            // in the list of buffers
	from  int            // of the elements that the first rank asks for; a tensor's place in an arena
	room  []float32
}

// cutRequest is a message from the first rank to the others.
type cutRequest struct {
	Do     string `json:"do"` // read, write or end
	Buffer int    `json:"buffer"`
	Lo     int    `json:"lo"`
	Hi     int    `json:"hi"`
	Error  string `json:"error,omitempty"` // with end: why the first rank failed
}

// Len returns the length of the whole buffer.
func (c *Cut) Len() int { return c.n }

// DType returns the element type.
func (c *Cut) DType() kernels.DType { return c.own.DType() }

// Slice returns elements lo to hi, to be read.
func (c *Cut) Slice(lo, hi int) *Cut {
	x := *c
	x.from, x.n, x.room = c.from+lo, hi-lo, nil
	return &x
}

// Read returns elements lo to hi in memory of the host, valid until the next call.
func (c *Cut) Read(lo, hi int) (kernels.Buffer, error) {
	lo, hi = lo+c.from, hi+c.from
	if err := ask(c.group, cutRequest{Do: "read", Buffer: c.index, Lo: lo, Hi: hi}); err != nil {
		return kernels.Buffer{}, err
	}
	x := kernels.Host(take(&c.room, hi-lo))
	var parts []ranks.Part
	for _, p := range c.held.owners {
		y, ok := p.within(lo, hi)
		switch {
		case !ok:
		case y.rank == 0:
			c.be.Copy(x.Slice(y.lo-lo, y.hi-lo), y.slice(c.own))
			c.be.Sync()
		default:
			parts = append(parts, ranks.Part{Data: x.Slice(y.lo-lo, y.hi-lo), Peer: y.rank})
		}
	}
	return x, c.group.Exchange(parts)
}

// Write sets the elements from lo on to x, in memory of the host.
func (c *Cut) Write(lo int, x kernels.Buffer) error {
	lo += c.from
	hi := lo + x.Len()
	if err := ask(c.group, cutRequest{Do: "write", Buffer: c.index, Lo: lo, Hi: hi}); err != nil {
		return err
	}
	var parts []ranks.Part
	for _, p := range c.held.all {
		y, ok := p.within(lo, hi)
		switch {
		case !ok:
		case y.rank == 0:
			c.be.Copy(y.slice(c.own), x.Slice(y.lo-lo, y.hi-lo))
			c.be.Sync()
		default:
			parts = append(parts, ranks.Part{Data: x.Slice(y.lo-lo, y.hi-lo), Peer: y.rank, Send: true})
		}
	}
	return c.group.Exchange(parts)
}

// serve does this rank's part of a request of the first rank.
func (c *Cut) serve(q cutRequest) error {
	list := c.held.all
	if q.Do == "read" {
		list = c.held.owners
	}
	room := kernels.Host(take(&c.room, q.Hi-q.Lo))
	var parts []ranks.Part
	var to []kernels.Buffer
	for _, p := range list {
		y, ok := p.within(q.Lo, q.Hi)
		if !ok || y.rank != c.group.Rank() {
			continue
		}
		x, own := room.Slice(y.lo-q.Lo, y.hi-q.Lo), y.slice(c.own)
		if q.Do == "read" {
			c.be.Copy(x, own)
		}
		parts, to = append(parts, ranks.Part{Data: x, Peer: 0, Send: q.Do == "read"}), append(to, own)
	}
	c.be.Sync()
	if err := c.group.Exchange(parts); err != nil || q.Do == "read" {
		return err
	}
	for i, p := range parts {
		c.be.Copy(to[i], p.Data)
	}
	c.be.Sync()
	return nil
}

// ask tells the other ranks what the first one does next.
func ask(g ranks.Group, q cutRequest) error {
	b, err := json.Marshal(q)
	if err != nil {
		panic("train: " + err.Error()) // strings and integers
	}
	_, err = ranks.Share(g, b)
	return err
}

// withBuffers is Trainer.WithBuffers.
func withBuffers(g ranks.Group, be kernels.Backend, list []NamedBuffer, f func(list []NamedBuffer) error) error {
	if g.Size() == 1 {
		return f(list)
	}
	be.Sync()
	for i := range list {
		if c := list[i].Cut; c != nil {
			c.index = i
		}
	}
	if g.Rank() == 0 {
		err := f(list)
		end := cutRequest{Do: "end"}
		if err != nil {
			end.Error = err.Error()
		}
		if lost := ask(g, end); err == nil {
			err = lost
		}
		return err
	}
	for {
		all, err := ranks.Share(g, nil)
		if err != nil {
			return err
		}
		var q cutRequest
		if err := json.Unmarshal(all[0], &q); err != nil {
			return err
		}
		switch {
		case q.Do != "end":
			err = list[q.Buffer].Cut.serve(q)
		case q.Error != "":
			return fmt.Errorf("rank 0: %s", q.Error)
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// shareState gives the first rank's state to the other ranks.
func shareState(g ranks.Group, s *State) error {
	var mine []byte
	if g.Rank() == 0 {
		var err error
		if mine, err = json.Marshal(s); err != nil {
			return err
		}
	}
	all, err := ranks.Share(g, mine)
	if err != nil {
		return err
	}
	*s = State{}
	return json.Unmarshal(all[0], s)
}

// spread gives the first rank's state to the other ranks, and its parameters if each rank has
// them all.
func spread(g ranks.Group, s *State, learners ...*learner) error {
	if g.Size() == 1 {
		return nil
	}
	if err := shareState(g, s); err != nil {
		return err
	}
	for _, l := range learners {
		if l.cutsParams() {
			continue
		}
		if err := giveParams(g, l.m); err != nil {
			return err
		}
	}
	return nil
}
