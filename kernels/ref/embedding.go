package ref

// Embed sets out[m] = weight[ids[m]]: out [M,C], weight [V,C], ids [M]. It
// panics if an id is not in [0,V).
func Embed[T Float](out, weight []T, ids []int32, C int) {
	if len(out) != len(ids)*C || len(weight)%C != 0 {
		panic("ref: Embed: length mismatch")
	}
	for m, id := range ids {
		copy(out[m*C:(m+1)*C], embedding(weight, id, C))
	}
}

// EmbedBackward adds dout[m] [C] to dweight[ids[m]], m ascending.
func EmbedBackward[T Float](dweight, dout []T, ids []int32, C int) {
	if len(dout) != len(ids)*C || len(dweight)%C != 0 {
		panic("ref: EmbedBackward: length mismatch")
	}
	for m, id := range ids {
		addTo(embedding(dweight, id, C), dout[m*C:(m+1)*C])
	}
}

func embedding[T Float](weight []T, id int32, C int) []T {
	if id < 0 || int(id) >= len(weight)/C {
		panic("ref: token id out of range")
	}
	return weight[int(id)*C : (int(id)+1)*C]
}
