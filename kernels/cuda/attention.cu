#include "sequence.h"

// Attention, a thread for each row and head. The largest score comes from a first pass, as
// the definition says; the second computes the scores again.
KERNEL(attention) {
	const struct attention_shape s = a.s;
	const long at = element(), i = at / s.H, h = at % s.H, kv = h / (s.H / s.K);
	if (i >= a.p.M) return;
	const long j = last_at_most(a.p.offsets, a.p.S, i);
	const struct sequence seq = sequence_of(a.p, j, group_of(a.p, j));
	const long n = seq.prefix + i - seq.first, from = first_seen(s, n);
	const float *q = a.qkv + i * stride(s) + h * s.D;
	float m = -INFINITE, y, lane[LANES] = {0}, *out = a.out + at * s.D;
	for (long t = from; t <= n; t++) {
		const float z = score(s, chain(q, a.qkv + key_at(s, row_of(seq, t), kv), s.D, 0), &y);
		if (z > m) m = z;
	}
	m += 0.0f;
	for (long d = 0; d < s.D; d++) out[d] = 0;
	for (long t = from; t <= n; t++) {
		const float z = score(s, chain(q, a.qkv + key_at(s, row_of(seq, t), kv), s.D, 0), &y), e = exp_of(z - m);
		const float *v = a.qkv + value_at(s, row_of(seq, t), kv);
		add_to_lane(lane, t, e);
		for (long d = 0; d < s.D; d++) out[d] = fmaf(e, v[d], out[d]);
	}
	const float inverse = 1 / fold(lane);
	a.stats[2 * at] = m;
	a.stats[2 * at + 1] = inverse;
	for (long d = 0; d < s.D; d++) out[d] *= inverse;
}

// What one key takes from one query: its probability and the gradient of its score.
struct pull {
	float p, dz;
};

DEVICE struct pull pull_of(const struct attention_backward_args *a, long i, long h, long row, float delta) {
	const struct attention_shape s = a->s;
	const long at = i * s.H + h, kv = h / (s.H / s.K);
	const float *q = a->qkv + i * stride(s) + h * s.D, *dout = a->dout + at * s.D;
	struct pull x;
	float y;
	const float z = score(s, chain(q, a->qkv + key_at(s, row, kv), s.D, 0), &y);
	x.p = exp_of(z - a->stats[2 * at]) * a->stats[2 * at + 1];
	x.dz = x.p * (chain(dout, a->qkv + value_at(s, row, kv), s.D, 0) - delta);
	if (s.cap > 0) x.dz = x.dz * (1 - y * y);
	x.dz = x.dz * s.scale;
	return x;
}

// delta_of is the lane sum of dout·out of a head.
DEVICE float delta_of(const struct attention_backward_args *a, long i, long h) {
	const long at = (i * a->s.H + h) * a->s.D;
	return lane_dot(a->dout + at, a->out + at, a->s.D);
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
	float *dq = a.dqkv + i * stride(s) + h * s.D;
	for (long d = 0; d < s.D; d++) dq[d] = 0;
	for (long t = first_seen(s, n); t <= n; t++) {
		const long row = row_of(seq, t);
		const float dz = pull_of(&a, i, h, row, delta).dz, *k = a.qkv + key_at(s, row, kv);
		for (long d = 0; d < s.D; d++) dq[d] = fmaf(dz, k[d], dq[d]);
	}
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
	float *dk = a.dqkv + key_at(s, row, kv), *dv = a.dqkv + value_at(s, row, kv);
	for (long d = 0; d < s.D; d++) dk[d] = dv[d] = 0;
	for (long see = j; see <= last; see++) {
		const struct sequence seq = sequence_of(a.p, see, g);
		const long T = seq.prefix + seq.own, end = s.window > 0 && pos + s.window < T ? pos + s.window : T;
		for (long h = kv * share; h < (kv + 1) * share; h++)
			for (long n = pos > seq.prefix ? pos : seq.prefix; n < end; n++) {
				const long i = row_of(seq, n);
				const struct pull x = pull_of(&a, i, h, row, delta_of(&a, i, h));
				const float *q = a.qkv + i * stride(s) + h * s.D, *dout = a.dout + (i * s.H + h) * s.D;
				for (long d = 0; d < s.D; d++) {
					dk[d] = fmaf(x.dz, q[d], dk[d]);
					dv[d] = fmaf(x.p, dout[d], dv[d]);
				}
			}
	}
}
