#include "sequence.h"

// Attention, a thread for each row and head. The largest score comes from a first pass, as
// the definition says; the second computes the scores again.
KERNEL(attention) {
	const struct attention_shape s = a.s;
	const long at = element(), i = at / s.H, h = at % s.H, kv = h / (s.H / s.K);
	if (i >= a.p.M) return;
	const long j = last_at_most(a.p.offsets, a.p.S, i);
	const struct sequence seq = sequence_of(a.p, j, group_of(a.p, j));
	const long n = seq.prefix + i - seq.first, from = first_seen(s, n), q = query_at(s, i, h);
	float m = -INFINITE, y, lane[LANES] = {0};
	for (long t = from; t <= n; t++) {
		const float z = score(s, head_dot(a.qkv, q, a.qkv, key_at(s, row_of(seq, t), kv), s.D), &y);
		if (z > m) m = z;
	}
	m += 0.0f;
	const struct sums out = start_sums(a.room ? a.room + 3 * at * s.D : 0, a.out, at * s.D, s.D);
	for (long t = from; t <= n; t++) {
		const long row = row_of(seq, t);
		const float e = exp_of(score(s, head_dot(a.qkv, q, a.qkv, key_at(s, row, kv), s.D), &y) - m);
		add_to_lane(lane, t, e);
		add_products(out, t, e, a.qkv, value_at(s, row, kv));
	}
	end_sums(out, n + 1);
	const float inverse = 1 / fold(lane);
	a.stats[2 * at] = m;
	a.stats[2 * at + 1] = inverse;
	for (long d = 0; d < s.D; d++) store(a.out, at * s.D + d, out.acc[d] * inverse);
}

// What one key takes from one query: its probability and the gradient of its score.
struct pull {
	float p, dz;
};

DEVICE struct pull pull_of(const struct attention_backward_args *a, long i, long h, long row, float delta) {
	const struct attention_shape s = a->s;
	const long at = i * s.H + h, kv = h / (s.H / s.K);
	struct pull x;
	float y;
	const float z = score(s, head_dot(a->qkv, query_at(s, i, h), a->qkv, key_at(s, row, kv), s.D), &y);
	x.p = exp_of(z - a->stats[2 * at]) * a->stats[2 * at + 1];
	x.dz = x.p * (head_dot(a->dout, at * s.D, a->qkv, value_at(s, row, kv), s.D) - delta);
	if (s.cap > 0) x.dz = x.dz * (1 - y * y);
	x.dz = x.dz * s.scale;
	return x;
}

// delta_of is the lane sum of dout·out of a head.
DEVICE float delta_of(const struct attention_backward_args *a, long i, long h) {
	const long at = (i * a->s.H + h) * a->s.D;
	return lane_dot(a->dout, at, a->out, at, a->s.D);
}

// A thread for each row and head sets the gradient of its query.
KERNEL(attention_dq) {
	const struct attention_shape s = a.s;
	const long at = element(), i = at / s.H, h = at % s.H, kv = h / (s.H / s.K);
	if (i >= a.p.M) return;
	const long j = last_at_most(a.p.offsets, a.p.S, i);
	const struct sequence seq = sequence_of(a.p, j, group_of(a.p, j));
	const long n = seq.prefix + i - seq.first;
	const float delta = delta_of(&a, i, h);
	const struct sums dq = start_sums(a.room ? a.room + 3 * at * s.D : 0, a.dqkv, query_at(s, i, h), s.D);
	for (long t = first_seen(s, n); t <= n; t++) {
		const long row = row_of(seq, t);
		add_products(dq, t, pull_of(&a, i, h, row, delta).dz, a.qkv, key_at(s, row, kv));
	}
	end_sums(dq, n + 1);
	for (long d = 0; d < s.D; d++) store(a.dqkv, query_at(s, i, h) + d, dq.acc[d]);
}

// A thread for each row and key/value head sets the gradients of its key and value: over the
// sequences that see it, the query heads that share the head, and the query rows.
KERNEL(attention_dkv) {
	const struct attention_shape s = a.s;
	const long at = element(), row = at / s.K, kv = at % s.K, share = s.H / s.K;
	if (row >= a.p.M) return;
	const long j = last_at_most(a.p.offsets, a.p.S, row), g = group_of(a.p, j);
	const struct sequence home = sequence_of(a.p, j, g);
	const long pos = home.prefix + row - home.first;
	const long last = a.p.G && a.p.groups[g] == j ? a.p.groups[g + 1] - 1 : j; // a prefix is seen by its group
	float *room = a.room ? a.room + 6 * at * s.D : 0;
	const struct sums dk = start_sums(room, a.dqkv, key_at(s, row, kv), s.D);
	const struct sums dv = start_sums(room ? room + 3 * s.D : 0, a.dqkv, value_at(s, row, kv), s.D);
	for (long see = j; see <= last; see++) {
		const struct sequence seq = sequence_of(a.p, see, g);
		const long T = seq.prefix + seq.own, end = s.window > 0 && pos + s.window < T ? pos + s.window : T;
		for (long h = kv * share; h < (kv + 1) * share; h++) {
			for (long n = pos > seq.prefix ? pos : seq.prefix; n < end; n++) {
				const long i = row_of(seq, n);
				const struct pull x = pull_of(&a, i, h, row, delta_of(&a, i, h));
				add_products(dk, n, x.dz, a.qkv, query_at(s, i, h));
				add_products(dv, n, x.p, a.dout, (i * s.H + h) * s.D);
			}
			add_zeros(dk, end, T);
			add_zeros(dv, end, T);
			end_sums(dk, T);
			end_sums(dv, T);
		}
	}
	for (long d = 0; d < s.D; d++) {
		store(a.dqkv, key_at(s, row, kv) + d, dk.acc[d]);
		store(a.dqkv, value_at(s, row, kv) + d, dv.acc[d]);
	}
}
