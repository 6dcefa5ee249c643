package ref

import "exp/kernels"

// JoinLatent sets rows qkv [M,3·H·D] of queries, keys and values from q [M,H·D], kv [M,H·(Nope+Value)] and the
// rotated channels rope [M,Rope] that all keys share, see kernels.Latent.
func JoinLatent[T Float](qkv, q, kv, rope []T, s kernels.LatentShape) {
	M := latentRows(q, s)
	D, each := s.D(), s.Nope+s.Value
	if len(qkv) != 3*len(q) || len(kv) != M*s.H*each || len(rope) != M*s.Rope {
		panic("ref: JoinLatent: length mismatch")
	}
	for v := range M * s.H {
		m, h := v/s.H, v%s.H
		row := qkv[m*3*s.H*D:]
		query, key, value := row[h*D:][:D], row[(s.H+h)*D:][:D], row[(2*s.H+h)*D:][:D]
		from, parts := q[v*D:][:D], kv[v*each:][:each]
		for i := range s.Rope {
			query[i], key[i] = from[s.Nope+s.Channel(i)], rope[m*s.Rope+s.Channel(i)]
		}
		copy(query[s.Rope:], from[:s.Nope])
		copy(key[s.Rope:], parts[:s.Nope])
		clear(value[copy(value, parts[s.Nope:]):])
	}
}

// SplitLatent sets dq, dkv and drope from dqkv: JoinLatent's backward pass. The gradients of rope are plain
// sums over the heads.
func SplitLatent[T Float](dq, dkv, drope, dqkv []T, s kernels.LatentShape) {
	M := latentRows(dq, s)
	D, each := s.D(), s.Nope+s.Value
	if len(dqkv) != 3*len(dq) || len(dkv) != M*s.H*each || len(drope) != M*s.Rope {
		panic("ref: SplitLatent: length mismatch")
	}
	clear(drope)
	for v := range M * s.H {
		m, h := v/s.H, v%s.H
		row := dqkv[m*3*s.H*D:]
		query, key, value := row[h*D:][:D], row[(s.H+h)*D:][:D], row[(2*s.H+h)*D:][:D]
		to, parts := dq[v*D:][:D], dkv[v*each:][:each]
		for i := range s.Rope {
			to[s.Nope+s.Channel(i)] = query[i]
			drope[m*s.Rope+s.Channel(i)] += key[i]
		}
		copy(to, query[s.Rope:])
		copy(parts, key[s.Rope:])
		copy(parts[s.Nope:], value)
	}
}

// TakeValues sets out [M,H·Value] to the first Value channels of each head of att [M,H·D].
func TakeValues[T Float](out, att []T, s kernels.LatentShape) {
	M := latentRows(att, s)
	if len(out) != M*s.H*s.Value {
		panic("ref: TakeValues: length mismatch")
	}
	for v := range M * s.H {
		copy(out[v*s.Value:(v+1)*s.Value], att[v*s.D():])
	}
}

// PutValues sets att [M,H·D] to out [M,H·Value] and zeros in the other channels: TakeValues' backward pass.
func PutValues[T Float](att, out []T, s kernels.LatentShape) {
	M := latentRows(att, s)
	if len(out) != M*s.H*s.Value {
		panic("ref: PutValues: length mismatch")
	}
	clear(att)
	for v := range M * s.H {
		copy(att[v*s.D():], out[v*s.Value:(v+1)*s.Value])
	}
}

// latentRows returns the rows of x [M,H·D].
func latentRows[T Float](x []T, s kernels.LatentShape) int {
	s.Check()
	M := len(x) / (s.H * s.D())
	if len(x) != M*s.H*s.D() {
		panic("ref: latent attention: not a whole number of rows")
	}
	return M
}

func (b *Backend[T]) JoinLatent(qkv, q, kv, rope kernels.Buffer, s kernels.LatentShape) {
	JoinLatent(floats[T](qkv), floats[T](q), floats[T](kv), floats[T](rope), s)
}

func (b *Backend[T]) SplitLatent(dq, dkv, drope, dqkv kernels.Buffer, s kernels.LatentShape) {
	SplitLatent(floats[T](dq), floats[T](dkv), floats[T](drope), floats[T](dqkv), s)
}

func (b *Backend[T]) TakeValues(out, att kernels.Buffer, s kernels.LatentShape) {
	TakeValues(floats[T](out), floats[T](att), s)
}

func (b *Backend[T]) PutValues(att, out kernels.Buffer, s kernels.LatentShape) {
	PutValues(floats[T](att), floats[T](out), s)
}

func (b Mixed) JoinLatent(qkv, q, kv, rope kernels.Buffer, s kernels.LatentShape) {
	y := wide(qkv)
	JoinLatent(y, wide(q), wide(kv), wide(rope), s)
	store(qkv, y)
}

func (b Mixed) SplitLatent(dq, dkv, drope, dqkv kernels.Buffer, s kernels.LatentShape) {
	q, kv, rope := wide(dq), wide(dkv), wide(drope)
	SplitLatent(q, kv, rope, wide(dqkv), s)
	store(dq, q)
	store(dkv, kv)
	store(drope, rope)
}

func (b Mixed) TakeValues(out, att kernels.Buffer, s kernels.LatentShape) {
	y := wide(out)
	TakeValues(y, wide(att), s)
	store(out, y)
}

func (b Mixed) PutValues(att, out kernels.Buffer, s kernels.LatentShape) {
	y := wide(att)
	PutValues(y, wide(out), s)
	store(att, y)
}
