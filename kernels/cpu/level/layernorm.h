// layernorm.h: layer norm of rows, and its gradients.

static void layernorm(const struct layernorm_args *g, long lo, long hi, int tid) {
	(void)tid;
	const long c = g->c;
	for (long m = lo; m < hi; m++) {
		const float *x = g->x + m * c;
		float *out = g->out + m * c;
		vf sum = v_zero(), squares = v_zero();
		for (long i = 0; i < c; i += LANES) sum = v_add(sum, v_loadt(x + i, lanes_left(c - i)));
		const float mean = v_sum(sum) / (float)c;
		const vf mv = v_set1(mean);
		for (long i = 0; i < c; i += LANES) {
			const int n = lanes_left(c - i);
			const vf d = v_sub(v_loadt(x + i, n), mv), kept = n < LANES ? v_keep(d, n, v_zero()) : d;
			squares = v_fma(kept, kept, squares);
		}
		const float rstd = 1.0f / sqrtf(v_sum(squares) / (float)c + g->eps);
		const vf rv = v_set1(rstd);
		g->stats[2 * m] = mean, g->stats[2 * m + 1] = rstd;
		for (long i = 0; i < c; i += LANES) {
			const int n = lanes_left(c - i);
			const vf h = v_mul(v_sub(v_loadt(x + i, n), mv), rv);
			v_storet(out + i, v_fma(h, v_loadt(g->weight + i, n), v_loadt(g->bias + i, n)), n);
		}
	}
}

// layernorm_dweight adds to dweight and dbias in units of LANES columns.
static void layernorm_dweight(const struct layernorm_back_args *g, long lo, long hi, int tid) {
	(void)tid;
	for (long j = lo * LANES; j < hi * LANES; j += LANES) {
		const int n = lanes_left(g->c - j);
		vf dw = v_loadt(g->dweight + j, n), db = v_loadt(g->dbias + j, n);
		for (long b = 0; b < g->blocks; b++) {
			vf chain = v_zero(), plain = v_zero();
			for (long m = g->block[b]; m < g->block[b + 1]; m++) {
				const vf d = v_loadt(g->dout + m * g->c + j, n);
				const vf h = v_mul(v_sub(v_loadt(g->x + m * g->c + j, n), v_set1(g->stats[2 * m])), v_set1(g->stats[2 * m + 1]));
				chain = v_fma(d, h, chain);
				plain = v_add(plain, d);
			}
			dw = v_add(dw, chain);
			db = v_add(db, plain);
		}
		v_storet(g->dweight + j, dw, n);
		v_storet(g->dbias + j, db, n);
	}
}

// layernorm_backward sets dx of rows lo..hi.
static void layernorm_backward(const struct layernorm_back_args *g, long lo, long hi, int tid) {
	(void)tid;
	const long c = g->c;
	for (long m = lo; m < hi; m++) {
		const float *x = g->x + m * c, *dout = g->dout + m * c;
		const vf mean = v_set1(g->stats[2 * m]), rstd = v_set1(g->stats[2 * m + 1]);
		vf sum = v_zero(), dot = v_zero();
		for (long i = 0; i < c; i += LANES) {
			const int n = lanes_left(c - i);
			const vf h = v_mul(v_sub(v_loadt(x + i, n), mean), rstd), d = v_mul(v_loadt(dout + i, n), v_loadt(g->weight + i, n));
			sum = v_add(sum, d);
			dot = v_fma(d, n < LANES ? v_keep(h, n, v_zero()) : h, dot);
		}
		const vf a = v_set1(v_sum(sum) / (float)c), b = v_set1(v_sum(dot) / (float)c);
		for (long i = 0; i < c; i += LANES) {
			const int n = lanes_left(c - i);
			const vf h = v_mul(v_sub(v_loadt(x + i, n), mean), rstd), d = v_mul(v_loadt(dout + i, n), v_loadt(g->weight + i, n));
			v_storet(g->dx + m * c + i, v_mul(v_fma(v_neg(h), b, v_sub(d, a)), rstd), n);
		}
	}
}
