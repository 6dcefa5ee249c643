// delta.h locates what linear attention reads in projected and mixed rows (kernels.DeltaShape).
#ifndef EXP_CUDA_DELTA_H
#define EXP_CUDA_DELTA_H

#include "sequence.h"
#include "wide.h"

// Up to 8 channels: the first mixed one, its column in a projected row, and how many are left of its block.
struct strip {
	long c, at, left;
};

// shared_by is the number of value heads that share a key head, and group_of_keys the columns of a key head by key.
DEVICE long shared_by(struct delta_shape s) { return s.values / s.keys; }
DEVICE long group_of_keys(struct delta_shape s) { return 2 * s.key_dim + 2 * shared_by(s) * s.value_dim; }

// first_mixed is the projected column of the first mixed one, unless they go by key.
DEVICE long first_mixed(struct delta_shape s) { return s.scan ? s.values * s.value_dim : 0; }

// strips is the number of strips of a mixed row, strip_of the i-th. By key a row has blocks of queries,
// then of keys, then of values.
DEVICE long strips(struct delta_shape s) {
	if (!s.by_key) return wides(s.mixed);
	return 2 * s.keys * wides(s.key_dim) + s.keys * wides(shared_by(s) * s.value_dim);
}

DEVICE struct strip strip_of(struct delta_shape s, long i) {
	const long own = wides(s.key_dim), most = shared_by(s) * s.value_dim, before = 2 * s.keys * own;
	struct strip r;
	if (!s.by_key) {
		r.c = i * WIDE;
		r.at = r.c + first_mixed(s);
		r.left = s.mixed - r.c;
	} else if (i < before) {
		const long b = i / own, d = i % own * WIDE;
		r.c = b * s.key_dim + d;
		r.at = b % s.keys * group_of_keys(s) + b / s.keys * s.key_dim + d;
		r.left = s.key_dim - d;
	} else {
		const long h = (i - before) / wides(most), d = (i - before) % wides(most) * WIDE;
		r.c = 2 * s.keys * s.key_dim + h * most + d;
		r.at = h * group_of_keys(s) + 2 * s.key_dim + d;
		r.left = most - d;
	}
	return r;
}

// projected is the projected column of mixed channel c.
DEVICE long projected(struct delta_shape s, long c) {
	const long keys = s.keys * s.key_dim, most = shared_by(s) * s.value_dim;
	if (!s.by_key) return c + first_mixed(s);
	if (c >= 2 * keys) return (c - 2 * keys) / most * group_of_keys(s) + 2 * s.key_dim + (c - 2 * keys) % most;
	return c % keys / s.key_dim * group_of_keys(s) + c / keys * s.key_dim + c % s.key_dim;
}

// gate_column is the first projected column of a value head's gates. write_column and forget_column have its logits.
DEVICE long gate_column(struct delta_shape s, long h) {
	if (s.scan) return h * s.value_dim;
	if (!s.by_key) return s.mixed + h * s.value_dim;
	return h / shared_by(s) * group_of_keys(s) + 2 * s.key_dim + (shared_by(s) + h % shared_by(s)) * s.value_dim;
}

DEVICE long write_column(struct delta_shape s, long h) {
	const long at = s.mixed + s.values * s.value_dim;
	return s.by_key ? at + h / shared_by(s) * 2 * shared_by(s) + h % shared_by(s) : at + h;
}

DEVICE long forget_column(struct delta_shape s, long h) {
	if (s.scan) return write_column(s, h);
	return write_column(s, h) + (s.by_key ? shared_by(s) : s.values);
}

// head_column is the first mixed column of query head h, or of key head h - keys. In a scan they follow the values, keys
// first.
DEVICE long head_column(struct delta_shape s, const int scan, long h) {
	if (!scan) return h * s.key_dim;
	return s.values * s.value_dim + (h < s.keys ? h + s.keys : h - s.keys) * s.key_dim;
}

// A row of a sequence: the sequence, its group, and the row's position.
struct place {
	struct sequence q;
	long j, g, t;
};

DEVICE struct place place_of(struct packing p, long m) {
	struct place r;
	r.j = last_at_most(p.offsets, p.S, m);
	r.g = group_of(p, r.j);
	r.q = sequence_of(p, r.j, r.g);
	r.t = r.q.prefix + m - r.q.first;
	return r;
}

// slot_of returns the slot of sequence j, and sets *first if its rows are its first.
DEVICE long slot_of(const int *slots, long j, int *first) {
	*first = slots[j] < 0;
	return *first ? -1 - slots[j] : slots[j];
}

#endif
