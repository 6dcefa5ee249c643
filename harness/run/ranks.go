package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/hub"
	"exp/harness/plan"
	"exp/harness/ranks/nccl"
	"exp/harness/stage"
	"exp/kernels"
	"exp/train/ranks"
	"exp/train/tensor"
)

// Ranks are processes that execute the learning stages of a Runner with it: SFT and
// training. The first rank has the Runner, the others call Follow.
type Ranks struct {
	ranks.Group
	// Phase, if not nil, receives what this rank does.
	Phase func(s Standing)
	// Wait, if not nil, is called with true before this rank waits for as long as it takes,
	// and with false afterwards.
	Wait func(on bool)
	// NCCL is the file of the library that joins ranks on GPUs; empty: the one that the system
	// knows.
	NCCL string
	// Timeout is the longest time that such ranks wait for one another; 0: no limit.
	Timeout time.Duration
	// Explain, if not nil, says more of an error between GPUs.
	Explain func(error) error

	hosts    []string // of the ranks, once they have met
	library  string   // that joins them
	standing Standing
	broken   bool
}

// Meet checks that the job has size ranks, which run the same program on the same MPI library.
func (g *Ranks) Meet(size int, program, library string) error {
	if g.Size() != size {
		return fmt.Errorf("--ranks %d, but the launcher started worlds of %d: it does not belong to the library %s",
			size, g.Size(), library)
	}
	host, _ := os.Hostname()
	all, err := ranks.Share(g, []byte(strings.Join([]string{host, program, library}, "\n")))
	if err != nil {
		return err
	}
	first := strings.Split(string(all[0]), "\n")
	g.library, g.hosts = library, nil
	for r, text := range all {
		other := strings.Split(string(text), "\n")
		g.hosts = append(g.hosts, other[0])
		for i, what := range []string{"", "the program", "the MPI library"} {
			if i > 0 && other[i] != first[i] {
				return fmt.Errorf("%s of rank %d on %s is %s, but rank 0 on %s has %s", what, r, other[0], other[i],
					first[0], first[i])
			}
		}
	}
	return nil
}

// facts adds the ranks that compute a run on be to the facts of its attempt. They change no bit
// of the run and belong to no id.
func (g *Ranks) facts(to map[string]any, be kernels.Backend) {
	if g == nil {
		return
	}
	to["ranks"], to["rank_hosts"], to["mpi"] = g.Size(), g.hosts, g.library
	if _, on := be.(gpu); !on {
		return
	}
	if l, err := nccl.Load(g.NCCL); err == nil {
		to["nccl"] = l.String()
	}
}

// Standing is where a rank is in its work.
type Standing struct {
	Run        ident.Digest `json:"run"`
	Stage      string       `json:"stage"`
	Step       int          `json:"step"`
	Phase      string       `json:"phase"`
	Checkpoint int          `json:"checkpoint"` // last step that the first rank saved; 0: none
}

func (s Standing) String() string {
	return fmt.Sprintf("step %d, phase %s", s.Step, s.Phase)
}

// order is a stage that the first rank asks the others to execute; without a kind, they end.
type order struct {
	Kind   config.Stage            `json:"kind,omitempty"`
	Config string                  `json:"config,omitempty"`
	Seed   int64                   `json:"seed"`
	Suites []stage.Suite           `json:"suites,omitempty"`
	Stage  int                     `json:"stage"` // in the plan
	RID    ident.Digest            `json:"rid"`
	SID    ident.Digest            `json:"sid"`
	Inputs map[string]ident.Digest `json:"inputs,omitempty"`
	Store  string                  `json:"store,omitempty"`

	// The first rank's plans, for ranks that learn and for those that only sample.
	Placement stage.Placement `json:"placement,omitzero"`
	Sampling  stage.Placement `json:"sampling,omitzero"`
}

// placement returns the plan for one of size ranks.
func (o order) placement(c *config.Run, rank, size int) stage.Placement {
	if o.Kind == config.Train && !stage.CrewOf(c, rank, size).Learns {
		return o.Sampling
	}
	return o.Placement
}

// errBroken is returned after a stage failed on the first rank alone: the other ranks may
// still be within it.
var errBroken = errors.New("an earlier stage failed, and its ranks are lost")

// join makes a stage's environment one of the ranks', with their Wait, with a link between GPUs, or with this
// rank's shares of the device if ranks share products. leave ends the link and frees the shares.
func (g *Ranks) join(e *stage.Env, kind config.Stage) (leave func(), err error) {
	group, unlink, err := g.link(e.Backend)
	e.Ranks, e.Wait, e.Before = group, g.Wait, g.Before()
	if err != nil {
		return unlink, err
	}
	c, size := &e.Config.Run, group.Size()
	w := stage.Everyone(c, size)
	w.Rollout = w.Tensor
	if kind == config.Train {
		w = stage.CrewOf(c, group.Rank(), size)
	}
	var shares []*tensor.Backend
	own, crew := e.Backend, ranks.Between(group, w.First, w.First+w.Ranks)
	share := func(n int) kernels.Backend {
		if n == 1 {
			return own
		}
		_, products := ranks.Grid(crew, n)
		shares = append(shares, tensor.New(own, products))
		return shares[len(shares)-1]
	}
	e.Backend = share(w.Tensor)
	if w.Copies() {
		e.Sampling = share(w.Rollout)
	}
	return func() {
		for _, x := range shares {
			x.Close()
		}
		unlink()
	}, nil
}

// lead asks the other ranks to execute stage i with this one. leave must be called once it
// ends.
func (x *execution) lead(e *stage.Env, i int, sid ident.Digest, in map[string]ident.Digest) (leave func(),
	err error) {
	leave = func() {}
	g := x.Ranks
	if g == nil || g.Size() == 1 {
		return leave, nil
	}
	if g.broken {
		return leave, errBroken
	}
	g.broken = true // until the stage ends on all ranks
	dir, err := filepath.Abs(x.DB.Dir())
	if err != nil {
		return leave, err
	}
	b, err := json.Marshal(order{Kind: x.p.Stages[i].Kind, Config: x.p.Config.YAML(), Seed: x.p.Seed,
		Suites: x.p.Suites, Stage: i, RID: x.p.RID, SID: sid, Inputs: in, Store: dir,
		Placement: e.Placement, Sampling: x.forecast().SamplerPlacement()})
	if err != nil {
		return leave, err
	}
	if _, err := ranks.Share(g, b); err != nil {
		return leave, err
	}
	if err := ranks.Agree(g, nil); err != nil {
		return leave, err
	}
	if leave, err = g.join(e, x.p.Stages[i].Kind); err != nil {
		return leave, err
	}
	g.attend(e, x.p.RID, string(x.p.Stages[i].Kind))
	kept := e.Hooks.Checkpoint
	e.Hooks.Checkpoint = func(dir string, step int, chain ident.Digest) error {
		g.standing.Checkpoint = step
		if kept == nil {
			return nil
		}
		return kept(dir, step, chain)
	}
	return leave, nil
}

// attend makes the ranks tell of the stage's phases.
func (g *Ranks) attend(e *stage.Env, run ident.Digest, kind string) {
	g.standing = Standing{Run: run, Stage: kind, Phase: "start", Checkpoint: g.standing.Checkpoint}
	tell := func() {
		if g.Phase != nil {
			g.Phase(g.standing)
		}
	}
	tell()
	told := e.Hooks.Phase
	e.Hooks.Phase = func(step int, phase string, done, total int) {
		if told != nil {
			told(step, phase, done, total)
		}
		if g.standing.Step != step || g.standing.Phase != phase {
			g.standing.Step, g.standing.Phase = step, phase
			tell()
		}
	}
}

// End tells the other ranks that nothing is left to do. The first rank calls it.
func (g *Ranks) End() error {
	if g.broken {
		return errBroken
	}
	b, err := json.Marshal(order{})
	if err != nil {
		return err
	}
	_, err = ranks.Share(g, b)
	return err
}

// Follow executes stages with the first rank until that one ends. An error of this rank
// alone leaves the others waiting: the process must then end them.
func Follow(ctx context.Context, g *Ranks, getenv func(string) string) error {
	sources, err := plan.Sources()
	if err != nil {
		return err
	}
	for {
		if g.Wait != nil {
			g.Wait(true)
		}
		all, err := ranks.Share(g, nil)
		if g.Wait != nil {
			g.Wait(false)
		}
		if err != nil {
			return err
		}
		var o order
		if err := json.Unmarshal(all[0], &o); err != nil {
			return err
		}
		if o.Kind == "" {
			return nil
		}
		if err := g.follow(ctx, o, sources, getenv); err != nil && !errors.Is(err, stage.ErrStopped) {
			return err
		}
	}
}

// follow executes one stage.
func (g *Ranks) follow(ctx context.Context, o order, sources map[config.Stage]plan.Code,
	getenv func(string) string) (err error) {
	e, be, err := o.env(sources, getenv, g.Before())
	if be != nil {
		defer be.Close()
	}
	if err := ranks.Agree(g, err); err != nil {
		return err
	}
	e.Placement = o.placement(&e.Config.Run, g.Rank(), g.Size())
	defer recovered(&err)
	leave, err := g.join(e, o.Kind)
	defer leave()
	if err != nil {
		return err
	}
	g.attend(e, o.RID, string(o.Kind))
	_, err = stage.Run(ctx, e, o.Kind, "", o.Inputs)
	return err
}

// env plans the run of an order again and returns the environment of its stage, on the device
// of the rank with number local on its machine. It refuses a run whose id differs here.
func (o order) env(sources map[config.Stage]plan.Code, getenv func(string) string,
	local int) (*stage.Env, device.Device, error) {
	r, err := config.Load(config.Input{File: "configuration of rank 0", Data: []byte(o.Config),
		Find: hub.FromEnv(getenv).Cache.Find})
	if err != nil {
		return nil, nil, err
	}
	c := &r.Run.Compute
	if c.Device, err = device.Next(c.Device, c.Numerics, local); err != nil {
		return nil, nil, err
	}
	be, err := device.ForRun(&r.Run, getenv)
	if err != nil {
		return nil, nil, err
	}
	p, err := plan.New(r, o.Seed, be.Class(), sources, o.Suites...)
	if err != nil {
		return nil, be, err
	}
	if p.RID != o.RID {
		host, _ := os.Hostname()
		return nil, be, fmt.Errorf("on %s the run has the id %s, not %s: its program, data, weights or numerics "+
			"class (%s) differ", host, p.RID.Short(), o.RID.Short(), p.Numerics)
	}
	if _, err := os.Stat(o.Store); err != nil {
		return nil, be, fmt.Errorf("the store must lie where all ranks see it: %w", err)
	}
	return &stage.Env{Config: r, Backend: be, Blobs: blob.At(o.Store),
		Dir: store.RunDir(o.Store, o.RID), RID: o.RID, SID: o.SID,
		Seed: p.Stages[o.Stage].Root, Suites: p.Suites, Prompter: p.External.Prompter,
		Answers: store.JudgeDir(o.Store)}, be, nil
}
