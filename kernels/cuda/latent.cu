#include "wide.h"

// Heads of latent attention, to and from the rows that attention reads. A thread has an element: moving is bound by memory.

// The channels of a head there, and of its key and value apart.
DEVICE long channels(struct latent_shape s) { return s.nope + s.rope; }
DEVICE long apart(struct latent_shape s) { return s.nope + s.value; }

// rope_channel is the rotated channel that is the i-th of a head.
DEVICE long rope_channel(struct latent_shape s, long i) {
	if (!s.interleaved) return i;
	return i < s.rope / 2 ? 2 * i : 2 * (i - s.rope / 2) + 1;
}

// copy_element copies an element, whatever its bits. A null `from` is 0.
DEVICE void copy_element(struct operand to, long i, struct operand from, long j) {
	if (to.bf16) ((uint16_t *)to.at)[i] = from.at ? ((const uint16_t *)from.at)[j] : 0;
	else ((uint32_t *)to.at)[i] = from.at ? ((const uint32_t *)from.at)[j] : 0;
}

// A thread for each row, head and channel: of its query, key and value.
KERNEL(join_latent) {
	const long t = element(), D = channels(a.s), i = t % D, v = t / D, m = v / a.s.H, h = v % a.s.H;
	if (m >= a.M) return;
	const long query = (m * 3 * a.s.H + h) * D + i, key = query + a.s.H * D, value = key + a.s.H * D;
	const long kv = v * apart(a.s), rope = rope_channel(a.s, i);
	const struct operand none = {0, a.qkv.bf16};
	if (i < a.s.rope) {
		copy_element(a.qkv, query, a.q, v * D + a.s.nope + rope);
		copy_element(a.qkv, key, a.rope, m * a.s.rope + rope);
	} else {
		copy_element(a.qkv, query, a.q, v * D + i - a.s.rope);
		copy_element(a.qkv, key, a.kv, kv + i - a.s.rope);
	}
	copy_element(a.qkv, value, i < a.s.value ? a.kv : none, kv + a.s.nope + i);
}

// The same; the first head's threads add up the keys' rotated channels of all heads.
KERNEL(split_latent) {
	const long t = element(), D = channels(a.s), i = t % D, v = t / D, m = v / a.s.H, h = v % a.s.H;
	if (m >= a.M) return;
	const long query = (m * 3 * a.s.H + h) * D + i, key = query + a.s.H * D, value = key + a.s.H * D;
	const long kv = v * apart(a.s), rope = rope_channel(a.s, i);
	if (i < a.s.rope) {
		copy_element(a.q, v * D + a.s.nope + rope, a.qkv, query);
		if (h == 0) {
			float sum = 0;
			for (long k = 0; k < a.s.H; k++) sum += load(a.qkv, key + k * D);
			store(a.rope, m * a.s.rope + rope, sum);
		}
	} else {
		copy_element(a.q, v * D + i - a.s.rope, a.qkv, query);
		copy_element(a.kv, kv + i - a.s.rope, a.qkv, key);
	}
	if (i < a.s.value) copy_element(a.kv, kv + a.s.nope + i, a.qkv, value);
}

// A thread for each row, head and channel of att.
KERNEL(move_values) {
	const long t = element(), D = channels(a.s), i = t % D, v = t / D;
	const struct operand none = {0, a.att.bf16};
	if (v >= a.M * a.s.H) return;
	if (a.back) copy_element(a.att, t, i < a.s.value ? a.out : none, v * a.s.value + i);
	else if (i < a.s.value) copy_element(a.out, v * a.s.value + i, a.att, t);
}
