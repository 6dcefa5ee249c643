package model

import "exp/kernels"

// This file has GPT-2's learned positions: a table [MaxPositions,C], whose row p is added to the embedding of the
// token at position p of its sequence. Every rank of those that share products has it whole.

const positionTable = "model.embed_positions.weight"

// positions is that table and its gradient, empty if frozen.
type positions struct {
	table kernels.Matrix
	d     kernels.Buffer
}

func (x *layout) positions(c Config) {
	if c.Learned {
		x.one(positionTable, c.MaxPositions, c.Width)
	}
}

func (b *binder) positions() positions {
	c := b.Config
	switch {
	case !c.Learned:
		return positions{}
	case b.base != nil:
		return positions{table: b.base.positions}
	}
	return positions{kernels.Matrix{W: b.params.view(positionTable), Out: c.MaxPositions, In: c.Width},
		b.grad(positionTable)}
}

// addPositions adds the rows of positions pos to embeddings x [N,C]. t [N,C] is scratch.
func (m *Model) addPositions(x, pos, t kernels.Buffer) {
	if m.Config.Learned {
		m.be.Embed(t, m.positions.table, pos, 1)
		m.be.Add(x, t)
	}
}

// positionsBackward adds dx, the gradient of embeddings, to the table's.
func (m *Model) positionsBackward(ws *Workspace, dx kernels.Buffer) {
	if m.positions.d.Empty() {
		return
	}
	pos := ws.pos.dev.Slice(0, ws.n)
	if x, ok := m.be.(Cutter); ok {
		x.AddRows(m.positions.d, dx, pos, m.Config.Width)
	} else {
		m.be.EmbedBackward(m.positions.d, dx, pos, m.Config.Width, 1)
	}
}
