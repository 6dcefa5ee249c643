// experts.h: choosing the experts of rows, and summing the experts' results.

// better reports whether probability a ranks before b; NaN ranks last.
INLINE int better(float a, float b) { return a > b || (a == a && b != b); }

// score_of is what expert e is chosen by.
INLINE float score_of(const struct route_args *g, const float *p, long e) { return g->bias ? p[e] + g->bias[e] : p[e]; }

// group_score is what a group of experts is chosen by.
INLINE float group_score(const struct route_args *g, const float *p, long group) {
	const long size = g->experts / g->groups;
	float largest = -INFINITY, second = -INFINITY;
	for (long e = group * size; e < (group + 1) * size; e++) {
		const float c = score_of(g, p, e);
		if (c > largest) second = largest, largest = c;
		else if (c > second) second = c;
	}
	return g->sigmoid ? largest + second : largest;
}

// best_groups returns the groups that a row with probabilities p may go to, a bit for each.
INLINE uint64_t best_groups(const struct route_args *g, const float *p) {
	float score[64];
	uint64_t groups = 0;
	if (!g->groups) return ~(uint64_t)0;
	for (long k = 0; k < g->groups; k++) score[k] = group_score(g, p, k);
	for (long k = 0; k < g->groups; k++) {
		long rank = 0;
		for (long o = 0; o < g->groups; o++) rank += better(score[o], score[k]) || (o < k && !better(score[k], score[o]));
		if (rank < g->top_groups) groups |= (uint64_t)1 << k;
	}
	return groups;
}

// choose_best sets choice to the numbers of the `top` best experts by p, ascending; ties go to the
// lower number.
INLINE void choose_best(const struct route_args *g, int32_t *choice, const float *p) {
	const uint64_t groups = best_groups(g, p);
	const long top = g->top, size = g->groups ? g->experts / g->groups : g->experts;
	long held = 0; // entries of choice so far, best first
	for (long e = 0; e < g->experts; e++) {
		const float c = score_of(g, p, e);
		if (!(groups >> e / size & 1)) continue;
		if (held == top && !better(c, score_of(g, p, choice[top - 1]))) continue;
		long i = held < top ? held++ : top - 1;
		for (; i > 0 && better(c, score_of(g, p, choice[i - 1])); i--) choice[i] = choice[i - 1];
		choice[i] = (int32_t)e;
	}
	for (long i = 1; i < top; i++) {
		const int32_t e = choice[i];
		long j = i;
		for (; j > 0 && choice[j - 1] > e; j--) choice[j] = choice[j - 1];
		choice[j] = e;
	}
}

// route_softmax sets p[0:n] to the softmax of z[0:n].
INLINE void route_softmax(float *p, const float *z, long n) {
	const vf low = v_set1(-INFINITY);
	vf m = low, sum = v_zero();
	for (long i = 0; i < n; i += LANES) {
		const int w = lanes_left(n - i);
		const vf x = v_loadt(z + i, w);
		m = v_max(w < LANES ? v_keep(x, w, low) : x, m);
	}
	const vf max = v_set1(v_largest(m));
	for (long i = 0; i < n; i += LANES) {
		const int w = lanes_left(n - i);
		const vf e = v_exp_neg(v_sub(v_loadt(z + i, w), max));
		v_storet(p + i, e, w);
		sum = v_add(sum, w < LANES ? v_keep(e, w, v_zero()) : e);
	}
	const vf s = v_set1(v_sum(sum));
	for (long i = 0; i < n; i += LANES) {
		const int w = lanes_left(n - i);
		v_storet(p + i, v_div(v_loadt(p + i, w), s), w);
	}
}

INLINE void route_sigmoid(float *p, const float *z, long n) {
	for (long i = 0; i < n; i += LANES) v_storet(p + i, v_sigmoid(v_loadt(z + i, lanes_left(n - i))), lanes_left(n - i));
}

// route chooses the experts of rows lo..hi.
static void route(const struct route_args *g, long lo, long hi, int tid) {
	(void)tid;
	const long E = g->experts, J = g->top + g->shared;
	for (long m = lo; m < hi; m++) {
		const float *z = g->logits + m * (E + g->gated);
		float *p = g->probs + m * E, *weight = g->weight + m * J, sum = 0;
		int32_t *choice = g->choice + m * J;
		if (g->sigmoid) route_sigmoid(p, z, E);
		else route_softmax(p, z, E);
		choose_best(g, choice, p);
		for (long j = 0; j < g->top; j++) weight[j] = p[choice[j]], sum += weight[j];
		if (g->sigmoid) sum += g->eps;
		for (long j = 0; j < g->top; j++) {
			if (g->renorm) weight[j] /= sum;
			weight[j] *= g->scale;
		}
		if (g->shared) choice[g->top] = (int32_t)E, weight[g->top] = 1;
		if (g->gated) v_storen(weight + g->top, v_sigmoid(v_set1(z[E])), 1);
	}
}

// softmax_gradients replaces dz[0:n], the gradients of probabilities p, by the gradients of their logits.
INLINE void softmax_gradients(float *dz, const float *p, long n) {
	vf dot = v_zero();
	for (long i = 0; i < n; i += LANES) {
		const int w = lanes_left(n - i);
		const vf next = v_fma(v_loadt(dz + i, w), v_loadt(p + i, w), dot);
		dot = w < LANES ? v_keep(next, w, dot) : next;
	}
	const vf u = v_set1(v_sum(dot));
	for (long i = 0; i < n; i += LANES) {
		const int w = lanes_left(n - i);
		v_storet(dz + i, v_mul(v_loadt(p + i, w), v_sub(v_loadt(dz + i, w), u)), w);
	}
}

// route_backward sets dlogits of rows lo..hi.
static void route_backward(const struct route_args *g, long lo, long hi, int tid) {
	(void)tid;
	const long E = g->experts, J = g->top + g->shared;
	for (long m = lo; m < hi; m++) {
		const float *p = g->probs + m * E, *weight = g->weight + m * J, *dweight = g->dweight + m * J;
		const int32_t *choice = g->choice + m * J;
		float *dz = g->dlogits + m * (E + g->gated), sum = 0, t = 0;
		memset(dz, 0, E * sizeof *dz);
		for (long j = 0; j < g->top; j++) sum += p[choice[j]], t += dweight[j] * weight[j];
		if (g->sigmoid) sum += g->eps;
		for (long j = 0; j < g->top; j++) {
			const float d = g->scale * dweight[j];
			dz[choice[j]] = g->renorm ? (d - t) / sum : d;
		}
		if (g->sigmoid) {
			for (long j = 0; j < g->top; j++) dz[choice[j]] *= p[choice[j]] * (1 - p[choice[j]]);
		} else
			softmax_gradients(dz, p, E);
		if (g->gated) dz[E] = dweight[g->top] * (weight[g->top] * (1 - weight[g->top]));
	}
}

// combine_columns sets V vectors of out from column i, n elements in the last.
INLINE void combine_columns(const struct combine_args *g, const int V, long m, long i, int n) {
	vf sum[4];
	for (int v = 0; v < V; v++) sum[v] = v_zero();
	for (long j = m * g->j; j < (m + 1) * g->j; j++) {
		const vf w = v_set1(g->weight[j]);
		const float *x = g->x + g->slot[j] * g->c + i;
#pragma GCC unroll 4
		for (int v = 0; v < V; v++) sum[v] = v_fma(w, v_loadt(x + v * LANES, n), sum[v]);
	}
	for (int v = 0; v < V; v++) v_storet(g->out + m * g->c + i + v * LANES, sum[v], n);
}

// combine sets rows lo..hi of out.
static void combine(const struct combine_args *g, long lo, long hi, int tid) {
	(void)tid;
	for (long m = lo; m < hi; m++) {
		long i = 0;
		for (; i + 4 * LANES <= g->c; i += 4 * LANES) combine_columns(g, 4, m, i, LANES);
		for (; i < g->c; i += LANES) combine_columns(g, 1, m, i, lanes_left(g->c - i));
	}
}

// combine_backward sets dx and dweight of the results of rows lo..hi.
static void combine_backward(const struct combine_args *g, long lo, long hi, int tid) {
	(void)tid;
	for (long m = lo; m < hi; m++)
		for (long j = m * g->j; j < (m + 1) * g->j; j++) {
			const float *dout = g->dout + m * g->c, *x = g->x + g->slot[j] * g->c;
			float *dx = g->dx + g->slot[j] * g->c;
			const vf w = v_set1(g->weight[j]);
			vf dot = v_zero();
			for (long i = 0; i < g->c; i += LANES) {
				const int n = lanes_left(g->c - i);
				const vf d = v_loadt(dout + i, n), next = v_fma(d, v_loadt(x + i, n), dot);
				v_storet(dx + i, v_mul(w, d), n);
				dot = n < LANES ? v_keep(next, n, dot) : next;
			}
			g->dweight[j] = v_sum(dot);
		}
}
