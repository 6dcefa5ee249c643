package run

import (
	"fmt"
	"strings"

	"exp/harness/ranks/nccl"
	"exp/kernels"
	"exp/train/ranks"
)

// gpu is a device whose memory NCCL moves to other ranks.
type gpu interface {
	nccl.Device
	UUID() (string, error)
}

// local returns how many ranks of this rank's machine come before it.
func (g *Ranks) local() (n int) {
	for r := range g.Rank() {
		if g.hosts[r] == g.hosts[g.Rank()] {
			n++
		}
	}
	return n
}

// Here returns how many ranks this rank's machine has.
func (g *Ranks) Here() (n int) {
	for _, host := range g.hosts {
		if host == g.hosts[g.Rank()] {
			n++
		}
	}
	return n
}

// link returns the group of ranks that compute on be: this one, with a link between their GPUs
// if they have any. leave ends the link.
func (g *Ranks) link(be kernels.Backend) (group ranks.Group, leave func(), err error) {
	dev, on := be.(gpu)
	leave = func() {}
	if err := g.ownDevices(dev); err != nil || !on {
		return g, leave, err
	}
	library, err := nccl.Load(g.NCCL)
	if err := ranks.Agree(g, err); err != nil {
		return g, leave, err
	}
	var id nccl.ID
	if g.Rank() == 0 {
		id, err = nccl.NewID()
	}
	if err := ranks.Agree(g, err); err != nil {
		return g, leave, err
	}
	all, err := ranks.Share(g, append([]byte(fmt.Sprintf("%08d", library.Version)), id...))
	if err != nil {
		return g, leave, err
	}
	for r, text := range all {
		if theirs, first := string(text[:8]), string(all[0][:8]); theirs != first {
			return g, leave, fmt.Errorf("rank %d on %s has another version of NCCL (%s) than rank 0 on %s (%s)", r,
				g.hosts[r], strings.TrimLeft(theirs, "0"), g.hosts[0], strings.TrimLeft(first, "0"))
		}
	}
	c, err := nccl.Join(dev, all[0][8:], g.Rank(), g.Size(), g.Timeout)
	if err != nil {
		return g, leave, g.explain(err)
	}
	return ranks.Linked{Group: g, Link: explained{c, g}}, c.Close, nil
}

// explain says more of an error between GPUs.
func (g *Ranks) explain(err error) error {
	if err == nil || g.Explain == nil {
		return err
	}
	return g.Explain(err)
}

// explained is a link whose errors say more.
type explained struct {
	ranks.Link
	group *Ranks
}

// Exchange implements ranks.Link.
func (l explained) Exchange(parts []ranks.Part) error { return l.group.explain(l.Link.Exchange(parts)) }

// ownDevices returns an error unless each rank has a GPU of its own, or none has one. dev is
// nil on the CPU.
func (g *Ranks) ownDevices(dev gpu) (err error) {
	mine := ""
	if dev != nil {
		mine, err = dev.UUID()
	}
	if err := ranks.Agree(g, err); err != nil {
		return err
	}
	all, err := ranks.Share(g, []byte(mine))
	if err != nil {
		return err
	}
	first := map[string]int{}
	for r, id := range all {
		switch before, taken := first[g.hosts[r]+string(id)]; {
		case (len(id) == 0) != (len(all[0]) == 0):
			return fmt.Errorf("of ranks 0 on %s and %d on %s one computes on a GPU and the other on the CPU: "+
				"name the device, --device cuda or --device cpu", g.hosts[0], r, g.hosts[r])
		case taken && len(id) > 0:
			return &SharedDeviceError{Host: g.hosts[r], Ranks: [2]int{before, r}}
		}
		first[g.hosts[r]+string(id)] = r
	}
	return nil
}

// SharedDeviceError says that two ranks have one GPU, which NCCL does not join.
type SharedDeviceError struct {
	Host  string
	Ranks [2]int
}

func (e *SharedDeviceError) Error() string {
	return fmt.Sprintf("ranks %d and %d have the same GPU on %s, and every rank needs its own", e.Ranks[0],
		e.Ranks[1], e.Host)
}

// Hint says what to change.
func (e *SharedDeviceError) Hint() string {
	return "start as many ranks on a machine as it has GPUs; exp doctor lists them, and CUDA_VISIBLE_DEVICES " +
		"hides some"
}

// ExitCode is the code for something that the machine lacks.
func (e *SharedDeviceError) ExitCode() int { return 7 }

// NCCLVariable names the file of the NCCL library.
const NCCLVariable = "EXP_NCCL"

// FindNCCL returns the library that joins ranks on GPUs, for people.
func FindNCCL(getenv func(string) string) (string, error) {
	l, err := nccl.Load(getenv(NCCLVariable))
	return l.String(), err
}
