package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"exp/kernels"
	"exp/train/model"
	"exp/train/optim"
)

// trainer is a policy and a critic with their optimizers.
type trainer struct {
	be     kernels.Backend
	models [2]*model.Model
	opts   [2]*optim.AdamW
	ws     [2]*model.Workspace
	steps  int
}

func newTrainer(t *testing.T, be kernels.Backend) *trainer {
	t.Helper()
	x := &trainer{be: be}
	for i, h := range []model.Heads{policyHeads, {Value: true}} {
		m := newModel(t, be, toyQwen2, h, true)
		opt, err := optim.NewAdamW(be, m.Params().Len(), 0.9, 0.999, 1e-8, 0.01)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(opt.Close)
		ws, err := model.NewWorkspace(be, toyQwen2, h, model.Capacity{Tokens: 16, Sequences: 2}, model.KeepAll)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(ws.Close)
		x.models[i], x.opts[i], x.ws[i] = m, opt, ws
	}
	return x
}

// step is one update of both models on a batch that depends on the step.
func (x *trainer) step() {
	b := model.Batch{Offsets: []int32{0, 7, 16}, Prompt: []int32{3, 2}}
	for i := range 16 {
		b.Tokens = append(b.Tokens, int32((x.steps*5+i*3)%toyQwen2.Vocab))
	}
	for i, m := range x.models {
		ws := x.ws[i]
		ws.Load(b)
		m.ZeroGrads()
		m.Forward(ws)
		ones := make([]float32, ws.Rows())
		for j := range ones {
			ones[j] = -0.1
		}
		if i == 0 {
			m.Scores(ws, 1)
			ws.SetDropoutKeys([]uint64{1, 2})
			m.LogZ(ws, true)
			x.be.Copy(ws.DLogProb(), kernels.Host(ones))
			x.be.Zero(ws.DEntropy())
			x.be.Copy(ws.DLogZ(), kernels.Host(ones[:2]))
			m.Backward(ws, model.Upstream{Scores: true, LogZ: true})
		} else {
			m.Values(ws)
			x.be.Copy(ws.DValue(), kernels.Host(ones))
			m.Backward(ws, model.Upstream{Values: true})
		}
		m.FinishGrads()
		x.opts[i].Update(m.Params(), m.Grads(), 1e-2, 1)
		m.Refresh()
	}
	x.steps++
}

func (x *trainer) groups() []Group {
	var groups []Group
	for i, name := range []string{"policy", "critic"} {
		var moments []NamedBuffer
		for _, m := range x.opts[i].Moments() {
			moments = append(moments, NamedBuffer{Name: m.Name, Data: m.Buffer})
		}
		groups = append(groups, Group{Name: name, Buffers: Buffers(x.models[i], All)},
			Group{Name: name + ".adamw", Buffers: moments})
	}
	return groups
}

func (x *trainer) bytes() []byte {
	var all []byte
	for _, g := range x.groups() {
		for _, b := range g.Buffers {
			all = append(all, bufferBytes(x.be, b.Data)...)
		}
	}
	return all
}

// Ten steps are five steps, a checkpoint, a new process, and five steps, bit for
// bit: policy, critic, log Z head, and the moments of both.
func TestResume(t *testing.T) {
	for _, be := range []kernels.Backend{refBackend(), newCPU(t)} {
		t.Run(be.Name(), func(t *testing.T) {
			root := t.TempDir()
			unbroken := newTrainer(t, be)
			for range 10 {
				if unbroken.step(); unbroken.steps == 5 {
					state := State{Step: 5, Extra: json.RawMessage(fmt.Sprintf(`{"updates":%d}`, unbroken.opts[0].Steps())), Groups: unbroken.groups()}
					if _, err := Write(be, root, state); err != nil {
						t.Fatal(err)
					}
				}
			}

			resumed := newTrainer(t, be)
			resumed.step() // whatever it held before
			c, passed, err := Latest(root)
			if err != nil || len(passed) > 0 {
				t.Fatal(passed, err)
			}
			if err := c.Load(be, resumed.groups()); err != nil {
				t.Fatal(err)
			}
			var extra struct{ Updates int }
			if err := json.Unmarshal(c.Extra, &extra); err != nil {
				t.Fatal(err)
			}
			for i := range resumed.models {
				resumed.models[i].Refresh()
				resumed.opts[i].Restore(extra.Updates)
			}
			for resumed.steps = c.Step; resumed.steps < 10; {
				resumed.step()
			}
			if !bytes.Equal(resumed.bytes(), unbroken.bytes()) {
				t.Error("the resumed run ends with other bits")
			}
		})
	}
}
