// The sums of tensor cores: MatrixSum of kernels/ref, which a test holds against this, for the
// 16 × 8 sums of a warp at once. Subnormal factors count, as on the device.
#include "emulator.h"
#include "matrixunit.h"
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum { TERMS = 16, ROWS = 16, COLUMNS = 8, PLACES = 25, LEAST = -133 };

// One number for each column.
typedef int32_t column __attribute__((vector_size(4 * COLUMNS)));
typedef uint32_t bits __attribute__((vector_size(4 * COLUMNS)));
typedef float number __attribute__((vector_size(4 * COLUMNS)));
typedef uint16_t factors __attribute__((vector_size(2 * COLUMNS)));
typedef int64_t pairs __attribute__((vector_size(4 * COLUMNS)));

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

static column all(int32_t x) { return (column){0} + x; }

static int any(column x) {
	const pairs p = (pairs)x;
	return (p[0] | p[1] | p[2] | p[3]) != 0;
}

// choose is x where `is` is -1, and y where it is 0.
static column choose(column is, column x, column y) { return (x & is) | (y & ~is); }

// larger chooses element by element. cut drops the last places of numbers from 0 on, all if there are more than 30. gcc
// finds the instructions for neither in what plain C says.
#if defined(__AVX2__)
static column larger(column x, column y) { return (column)_mm256_max_epi32((__m256i)x, (__m256i)y); }
static column cut(column x, column places) { return (column)_mm256_srlv_epi32((__m256i)x, (__m256i)places); }
#else
static column larger(column x, column y) { return choose(x > y, x, y); }
static column cut(column x, column places) { return x >> choose(places < 31, places, all(31)); }
#endif

// Factors, taken apart: mantissas with 7 places; exponents, of zeros below all others; signs, 0 or -1.
struct row {
	column m[TERMS / COLUMNS], e[TERMS / COLUMNS], sign[TERMS / COLUMNS], special;
};
struct columns {
	column m[TERMS], e[TERMS], sign[TERMS], special; // m has ABOVE more places
	uint16_t bits[COLUMNS][TERMS];
};
enum { ABOVE = PLACES - 14, ZERO = -9999 };

// split takes eight factors apart.
static void split(const uint16_t *from, column *m, column *e, column *sign, column *special) {
	factors f;
	memcpy(&f, from, sizeof f);
	const column x = __builtin_convertvector(f, column), exponent = x >> 7 & 0xff;
	*m = (x & 0x7f) | ((exponent != 0) & 0x80);
	*e = choose((x & 0x7fff) == 0, all(ZERO), larger(exponent, all(1)) - 127);
	*sign = -(x >> 15);
	*special |= exponent == 0xff;
}

static void split_columns(struct columns *b) {
	uint16_t turned[TERMS][COLUMNS];
	for (int c = 0; c < COLUMNS; c++)
		for (int k = 0; k < TERMS; k++) turned[k][c] = b->bits[c][k];
	b->special = all(0);
	for (int k = 0; k < TERMS; k++) {
		split(turned[k], &b->m[k], &b->e[k], &b->sign[k], &b->special);
		b->m[k] <<= ABOVE;
	}
}

// cut_normal sets sums to ±m · 2^unit, cut towards zero, and says which are not 0 and not normal.
static column cut_normal(uint32_t *sum, bits m, column sign, column unit) {
	bits below = m >> 24; // the result keeps 24 bits; these mark how many are cut
	below |= below >> 1;
	below |= below >> 2;
	below |= below >> 4;
	m &= ~below;
	const number x = __builtin_convertvector((column)(m >> 16), number) * 0x1p16f +
		__builtin_convertvector((column)(m & 0xffff), number);
	const column zero = m == 0, exponent = ((column)x >> 23) + unit;
	const column result = ~zero & ((((column)x & 0x7fffff) | (sign & INT32_MIN)) + (exponent << 23));
	memcpy(sum, &result, sizeof result);
	return ~zero & ((exponent < 1) | (exponent > 254));
}

// add_row adds to the sums of a row its products with all columns.
static void add_row(uint32_t *acc, const uint16_t *a, const struct columns *b) {
	struct row r = {.special = all(0)};
	for (int i = 0; i < TERMS / COLUMNS; i++) split(a + i * COLUMNS, &r.m[i], &r.e[i], &r.sign[i], &r.special);
	const int32_t *m = (int32_t *)r.m, *e = (int32_t *)r.e, *s = (int32_t *)r.sign;
	if (!any(r.m[0] | r.m[1] | b->special)) { // as often, in the rows beyond the end of a matrix
		for (int c = 0; c < COLUMNS; c++) acc[c] = acc[c] == 1u << 31 ? 0 : acc[c];
		return;
	}
	column was, sum = all(0), of[TERMS];
	memcpy(&was, acc, sizeof was);
	const column exponent = was >> 23 & 0xff, nothing = (was & INT32_MAX) == 0, at = larger(exponent, all(1)) - 127;
	const column mantissa = (was & 0x7fffff) | ((exponent != 0) & 0x800000), negative = was >> 31;
	column top = larger(all(LEAST), choose(nothing, all(LEAST), at));
	for (int k = 0; k < TERMS; k++) {
		of[k] = b->e[k] + e[k];
		top = larger(top, of[k]);
	}
	// A product has 31 bits. The sum of the products has 31 bits, the sum with the addend 32.
	for (int k = 0; k < TERMS; k++) {
		const column part = cut(b->m[k] * m[k], top - of[k]), sign = b->sign[k] ^ s[k];
		sum += (part ^ sign) - sign;
	}
	const column part = cut(mantissa << (PLACES - 23), top - at), last = (part ^ negative) - negative;
	const column total = (column)((bits)sum + (bits)last);
	const column sign = ((sum & last) | ((sum | last) & total)) >> 31;
	const column special = b->special | (exponent == 0xff) | (any(r.special) ? all(-1) : all(0));
	uint32_t before[COLUMNS];
	memcpy(before, acc, sizeof before);
	if (!any(cut_normal(acc, (bits)(total ^ sign) - (bits)sign, sign, top - PLACES) | special)) return;
	for (int c = 0; c < COLUMNS; c++) {
		if (special[c]) acc[c] = special_sum(a, b->bits[c], before[c]);
		else acc[c] = cut_to_float((int64_t)sum[c] + last[c], top[c] - PLACES);
	}
}

void add_products(uint32_t sum[ROWS][COLUMNS], uint16_t x[ROWS][TERMS], uint16_t y[COLUMNS][TERMS]) {
	struct columns b;
	memcpy(b.bits, y, sizeof b.bits);
	split_columns(&b);
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
