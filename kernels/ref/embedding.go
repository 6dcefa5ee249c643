package ref

// Embed sets out[m] = scale·weight[ids[m]]: out [M,C], weight [V,C], ids [M]. scale is
// rounded to T first. It panics if an id is not in [0,V).
func Embed[T Float](out, weight []T, ids []int32, C int, scale float64) {
	if len(out) != len(ids)*C || len(weight)%C != 0 {
		panic("ref: Embed: length mismatch")
	}
	for m, id := range ids {
		for c, w := range embedding(weight, id, C) {
			out[m*C+c] = T(scale) * w
		}
	}
}

// EmbedBackward adds scale·dout[m] [C], rounded, to dweight[ids[m]], m ascending.
func EmbedBackward[T Float](dweight, dout []T, ids []int32, C int, scale float64) {
	if len(dout) != len(ids)*C || len(dweight)%C != 0 {
		panic("ref: EmbedBackward: length mismatch")
	}
	for m, id := range ids {
		for c, d := range embedding(dweight, id, C) {
			dweight[int(id)*C+c] = d + T(T(scale)*dout[m*C+c])
		}
	}
}

func embedding[T Float](weight []T, id int32, C int) []T {
	if id < 0 || int(id) >= len(weight)/C {
		panic("ref: token id out of range")
	}
	return weight[int(id)*C : (int(id)+1)*C]
}
