package run

import (
	"bytes"
	"fmt"
	"slices"

	"exp/harness/ranks/nccl"
	"exp/kernels"
	"exp/train/ranks"
)

// gpu is a device whose memory NCCL moves to other ranks.
type gpu interface {
	nccl.Device
	UUID() (string, error)
}

// Before returns how many ranks of this rank's machine come before it.
func (g *Ranks) Before() (n int) {
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
	if id, err = g.shareID(library.Release(), id); err != nil {
		return g, leave, err
	}
	c, err := nccl.Join(dev, id, g.Rank(), g.Size(), g.Timeout)
	if err != nil {
		return g, leave, g.explain(err)
	}
	return ranks.Linked{Group: g, Link: explained{c, g}}, c.Close, nil
}

// shareID returns the first rank's ID, or an error unless all ranks have one release of NCCL.
func (g *Ranks) shareID(release string, id nccl.ID) (nccl.ID, error) {
	all, err := ranks.Share(g, append([]byte(release+"\n"), id...))
	if err != nil {
		return nil, err
	}
	first, id, _ := bytes.Cut(all[0], []byte("\n"))
	for r, b := range all {
		if theirs, _, _ := bytes.Cut(b, []byte("\n")); !bytes.Equal(theirs, first) {
			return nil, &NCCLVersionsError{Rank: r, Hosts: [2]string{g.hosts[0], g.hosts[r]},
				Releases: [2]string{string(first), string(theirs)}}
		}
	}
	return id, nil
}

// NCCLVersionsError says that a rank has another release of NCCL than the first one.
type NCCLVersionsError struct {
	Rank            int
	Hosts, Releases [2]string // of rank 0 and of Rank
}

func (e *NCCLVersionsError) Error() string {
	return fmt.Sprintf("rank %d on %s has NCCL %s, rank 0 on %s has NCCL %s: all ranks need one version", e.Rank,
		e.Hosts[1], e.Releases[1], e.Hosts[0], e.Releases[0])
}

// Hint says what to change.
func (e *NCCLVersionsError) Hint() string {
	return "install one version on all machines, or name its file on each: " + NCCLVariable + "=/path/libnccl.so.2"
}

// ExitCode is the code for something that the machine lacks.
func (e *NCCLVersionsError) ExitCode() int { return 7 }

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
			where := []string{"a GPU", "the CPU"}
			if len(id) > 0 {
				slices.Reverse(where)
			}
			return fmt.Errorf("rank %d on %s computes on %s, rank 0 on %s on %s: name the device of all ranks, "+
				"--device cuda or --device cpu", r, g.hosts[r], where[1], g.hosts[0], where[0])
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
