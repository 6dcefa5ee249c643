package train

import (
	"encoding/json"
	"fmt"

	"exp/kernels"
	"exp/train/ranks"
)

// Cut is a buffer sharded over the ranks. The first rank reads and writes it within
// WithBuffers, so a checkpoint holds whole buffers whatever the number of ranks.
type Cut struct {
	all   ranks.Group // of the run
	group ranks.Group // those that hold the shards
	be    kernels.Backend
	ends  []int // of the shards
	own   kernels.Buffer
	index int // in the list of buffers
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
func (c *Cut) Len() int { return c.ends[len(c.ends)-1] }

// DType returns the element type.
func (c *Cut) DType() kernels.DType { return c.own.DType() }

// Read returns elements lo to hi in memory of the host, valid until the next call.
func (c *Cut) Read(lo, hi int) (kernels.Buffer, error) {
	if err := ask(c.all, cutRequest{Do: "read", Buffer: c.index, Lo: lo, Hi: hi}); err != nil {
		return kernels.Buffer{}, err
	}
	x := kernels.Host(take(&c.room, hi-lo))
	var parts []ranks.Part
	for r := range c.ends {
		from, to := c.overlap(r, lo, hi)
		switch {
		case from >= to:
		case r == c.group.Rank():
			c.be.Copy(x.Slice(from-lo, to-lo), c.shard(from, to))
			c.be.Sync()
		default:
			parts = append(parts, ranks.Part{Data: x.Slice(from-lo, to-lo), Peer: r})
		}
	}
	return x, c.group.Exchange(parts)
}

// Write sets the elements from lo on to x, in memory of the host.
func (c *Cut) Write(lo int, x kernels.Buffer) error {
	hi := lo + x.Len()
	if err := ask(c.all, cutRequest{Do: "write", Buffer: c.index, Lo: lo, Hi: hi}); err != nil {
		return err
	}
	var parts []ranks.Part
	for r := range c.ends {
		from, to := c.overlap(r, lo, hi)
		switch {
		case from >= to:
		case r == c.group.Rank():
			c.be.Copy(c.shard(from, to), x.Slice(from-lo, to-lo))
			c.be.Sync()
		default:
			parts = append(parts, ranks.Part{Data: x.Slice(from-lo, to-lo), Peer: r, Send: true})
		}
	}
	return c.group.Exchange(parts)
}

// overlap returns which of elements lo to hi rank r holds.
func (c *Cut) overlap(r, lo, hi int) (from, to int) {
	begin := 0
	if r > 0 {
		begin = c.ends[r-1]
	}
	return max(lo, begin), min(hi, c.ends[r])
}

// shard returns elements from to to, which this rank holds.
func (c *Cut) shard(from, to int) kernels.Buffer {
	begin := 0
	if r := c.group.Rank(); r > 0 {
		begin = c.ends[r-1]
	}
	return c.own.Slice(from-begin, to-begin)
}

// serve does this rank's part of a request of the first rank.
func (c *Cut) serve(q cutRequest) error {
	from, to := c.overlap(c.group.Rank(), q.Lo, q.Hi)
	if from >= to {
		return nil
	}
	x, part := c.shard(from, to), ranks.Part{Peer: 0, Send: q.Do == "read"}
	part.Data = kernels.Host(take(&c.room, to-from))
	if part.Send {
		c.be.Copy(part.Data, x)
		c.be.Sync()
	}
	if err := c.group.Exchange([]ranks.Part{part}); err != nil {
		return err
	}
	if !part.Send {
		c.be.Copy(x, part.Data)
		c.be.Sync()
	}
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
	holds := false // shards that the first rank asks for
	for i := range list {
		if c := list[i].Cut; c != nil {
			c.index, c.all = i, g
			holds = g.Rank()%(g.Size()/c.group.Size()) == 0
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
		case q.Do != "end" && !holds:
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

// spread gives the first rank's state and parameters to the other ranks, and the moments of
// each shard to the ranks that share its products.
func spread(g ranks.Group, s *State, learners ...*learner) error {
	if g.Size() == 1 {
		return nil
	}
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
	if err := json.Unmarshal(all[0], s); err != nil {
		return err
	}
	for _, l := range learners {
		ends := make([]int, g.Size())
		for r := range ends {
			ends[r] = l.m.Params().Len()
		}
		if err := ranks.Gather(g, l.m.Params(), ends); err != nil {
			return err
		}
		if err := l.spreadMoments(g); err != nil {
			return err
		}
	}
	return nil
}

// spreadMoments completes the moments of ranks that hold the same shard: the first of them has
// it.
func (l *learner) spreadMoments(g ranks.Group) error {
	_, same := ranks.Grid(g, g.Size()/l.group.Size())
	if same.Size() == 1 {
		return nil
	}
	m, v := l.opt.Moments()
	for _, x := range []kernels.Buffer{m, v} {
		ends := make([]int, same.Size())
		for r := range ends {
			ends[r] = x.Len()
		}
		l.be.Sync()
		if err := ranks.Gather(same, x, ends); err != nil {
			return err
		}
	}
	return nil
}
