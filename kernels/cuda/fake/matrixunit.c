// The sums of tensor cores: MatrixSum of kernels/ref, which a test holds against this, for the
// 16 × 8 sums of a warp at once. Subnormal factors count, as on the device.
#include "emulator.h"
#include "matrixunit.h"
#include <string.h>

enum { TERMS = 16, ROWS = 16, COLUMNS = 8, PLACES = 25, LEAST = -133 };

// One number for each column.
typedef int32_t column __attribute__((vector_size(4 * COLUMNS)));

static float float_from(uint32_t u) {
	union { uint32_t u; float f; } v = {u};
	return v.f;
}

static uint32_t bits_from(float f) {
	union { float f; uint32_t u; } v = {f};
	return v.u;
}

// cut_to_float returns sum · 2^unit, cut towards zero.
static uint32_t cut_to_float(int64_t sum, int unit) {
	if (!sum) return 0;
	const uint32_t sign = sum < 0 ? 1u << 31 : 0;
	uint64_t m = sum < 0 ? -sum : sum;
	const int exponent = 63 - __builtin_clzll(m) + unit, last = exponent - 23 > -149 ? exponent - 23 : -149;
	const int drop = last - unit;
	m = drop > 63 ? 0 : drop > 0 ? m >> drop : m << -drop;
	if (exponent > 127) return sign | 0x7f800000;
	if (exponent < -126) return m ? sign | (uint32_t)m : 0;
	return sign | (uint32_t)(exponent + 127) << 23 | (uint32_t)(m & 0x7fffff);
}

// special_sum is a sum with an infinity or a NaN among its numbers.
static uint32_t special_sum(const uint16_t *a, const uint16_t *b, uint32_t acc) {
	double sum = float_from(acc);
	for (int k = 0; k < TERMS; k++)
		sum += (double)float_from((uint32_t)a[k] << 16) * float_from((uint32_t)b[k] << 16);
	return bits_from((float)sum);
}

// The columns of b, taken apart.
struct factors {
	column m[TERMS], e[TERMS], sign[TERMS]; // the mantissa, 7 places; the exponent; 0 or -1
	uint16_t bits[COLUMNS][TERMS];
	int special[COLUMNS], infinite; // infinite: any column is special
};

static int exponent_of(uint16_t x) { return x >> 7 & 0xff; }
static int mantissa_of(uint16_t x) { return (x & 0x7f) | (exponent_of(x) ? 0x80 : 0); }

static void split(struct factors *f) {
	f->infinite = 0;
	for (int c = 0; c < COLUMNS; c++) {
		f->special[c] = 0;
		for (int k = 0; k < TERMS; k++) {
			const uint16_t x = f->bits[c][k];
			f->m[k][c] = mantissa_of(x);
			f->e[k][c] = (exponent_of(x) ? exponent_of(x) : 1) - 127;
			f->sign[k][c] = x >> 15 ? -1 : 0;
			f->special[c] |= exponent_of(x) == 0xff;
		}
		f->infinite |= f->special[c];
	}
}

// larger is the larger of two numbers in each column.
static column larger(column x, column y) {
	const column is = x > y;
	return (x & is) | (y & ~is);
}

// unless_zero is e, or LEAST where m is 0.
static column unless_zero(column m, column e) {
	const column zero = m == 0;
	return (e & ~zero) | (zero & LEAST);
}

// add_row adds to the sums of a row its products with all columns.
static void add_row(uint32_t *acc, const uint16_t *a, const struct factors *b) {
	int zeros = 0;
	for (int k = 0; k < TERMS; k++) zeros += mantissa_of(a[k]) == 0;
	if (zeros == TERMS && !b->infinite) { // as often, in the rows beyond the end of a matrix
		for (int c = 0; c < COLUMNS; c++) acc[c] = acc[c] == 1u << 31 ? 0 : acc[c];
		return;
	}
	column p[TERMS], e[TERMS], top = (column){0} + LEAST, plus = {0}, minus = {0}, m, at, sign;
	int special = 0;
	for (int k = 0; k < TERMS; k++) {
		const int ea = exponent_of(a[k]);
		special |= ea == 0xff;
		p[k] = b->m[k] * mantissa_of(a[k]);
		e[k] = b->e[k] + ((ea ? ea : 1) - 127);
		top = larger(top, unless_zero(p[k], e[k]));
	}
	for (int c = 0; c < COLUMNS; c++) {
		const int ec = acc[c] >> 23 & 0xff;
		m[c] = (acc[c] & 0x7fffff) | (ec ? 0x800000 : 0);
		at[c] = (ec ? ec : 1) - 127;
		sign[c] = acc[c] >> 31 ? -1 : 0;
	}
	top = larger(top, unless_zero(m, at));
	// Sums of one sign are below 2^32; a zero addend's shift does not matter.
	for (int k = 0; k < TERMS; k++) {
		const column shift = top - e[k], far = shift > 31;
		const column part = (p[k] << (PLACES - 14)) >> ((shift & ~far) & 31) & ~far;
		const column negative = b->sign[k] ^ (a[k] >> 15 ? -1 : 0);
		plus += part & ~negative;
		minus += part & negative;
	}
	const column shift = top - at, far = shift > 31, part = (m << (PLACES - 23)) >> ((shift & ~far) & 31) & ~far;
	plus += part & ~sign;
	minus += part & sign;
	for (int c = 0; c < COLUMNS; c++) {
		if (special || b->special[c] || (acc[c] >> 23 & 0xff) == 0xff) acc[c] = special_sum(a, b->bits[c], acc[c]);
		else acc[c] = cut_to_float((int64_t)(uint32_t)plus[c] - (uint32_t)minus[c], top[c] - PLACES);
	}
}

void add_products(uint32_t sum[ROWS][COLUMNS], uint16_t x[ROWS][TERMS], uint16_t y[COLUMNS][TERMS]) {
	struct factors b;
	memcpy(b.bits, y, sizeof b.bits);
	split(&b);
	for (int r = 0; r < ROWS; r++) add_row(sum[r], x[r], &b);
}

// Lane 4·g+q has rows g and g+8 of a, terms 2q, 2q+1, 2q+8 and 2q+9; column g of b, the same terms;
// and the sums of rows g and g+8 and columns 2q and 2q+1.
void matrix_product(words *all) {
	uint16_t a[ROWS][TERMS], b[COLUMNS][TERMS];
	uint32_t sum[ROWS][COLUMNS];
	for (int l = 0; l < WARP; l++) { // two numbers at a time
		const int g = l / 4, q = 2 * (l % 4);
		for (int i = 0; i < 4; i++) memcpy(&a[g + i % 2 * 8][q + i / 2 * 8], &all[l][i], 4);
		for (int i = 0; i < 2; i++) memcpy(&b[g][q + i * 8], &all[l][4 + i], 4);
		for (int i = 0; i < 2; i++) memcpy(&sum[g + i * 8][q], &all[l][6 + 2 * i], 8);
	}
	add_products(sum, a, b);
	for (int l = 0; l < WARP; l++)
		for (int i = 0; i < 2; i++) memcpy(&all[l][6 + 2 * i], &sum[l / 4 + i * 8][2 * (l % 4)], 8);
}
