// The sums of tensor cores: MatrixSum of kernels/ref, which a test holds against this, for the
// 16 × 8 sums of a warp at once. Subnormal factors count, as on the device.
#include "emulator.h"
#include "matrixunit.h"
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

// Products and sums whose largest exponent is from LOW to HIGH are computed as float32, which then has room for all that
// counts. ZERO is a zero's exponent.
enum { PLACES = 25, LEAST = -133, LOW = -100, HIGH = 120, ZERO = -9999 };

static float float_from(uint32_t u) {
	union { uint32_t u; float f; } v = {u};
	return v.f;
}

static uint32_t bits_from(float f) {
	union { float f; uint32_t u; } v = {f};
	return v.u;
}

static float widened(uint16_t x) { return float_from((uint32_t)x << 16); }

// exponent_of is e where the leading bit of a normal number is 2^e.
static int exponent_of(uint32_t x) {
	const int e = x >> 23 & 0xff;
	return x << 1 ? (e ? e : 1) - 127 : ZERO;
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

// A sum of acc and the products of a row, whose terms are VECTOR apart, and a column: special_sum with an infinity or a
// NaN among its numbers, sum_alone with neither.
static uint32_t special_sum(uint32_t acc, const float *a, const uint16_t *b) {
	double sum = float_from(acc);
	for (int k = 0; k < TERMS; k++) sum += (double)a[k * VECTOR] * widened(b[k]);
	return bits_from((float)sum);
}

static uint32_t sum_alone(uint32_t acc, const float *a, const uint16_t *b) {
	int top = exponent_of(acc) > LEAST ? exponent_of(acc) : LEAST;
	for (int k = 0; k < TERMS; k++) {
		const int e = exponent_of(bits_from(a[k * VECTOR])) + exponent_of((uint32_t)b[k] << 16);
		top = e > top ? e : top;
	}
	const double units = __builtin_ldexp(1, PLACES - top);
	int64_t sum = (int64_t)(float_from(acc) * units);
	for (int k = 0; k < TERMS; k++) sum += (int64_t)((double)a[k * VECTOR] * widened(b[k]) * units);
	return cut_to_float(sum, top - PLACES);
}

typedef uint16_t factors __attribute__((vector_size(2 * VECTOR)));

static whole all(int32_t x) { return (whole){0} + x; }

// choose is x where `is` is -1, and y where it is 0.
static whole choose(whole is, whole x, whole y) { return (x & is) | (y & ~is); }

// larger chooses element by element, any says whether a bit is set, and cut_places turns whole numbers without sign into
// the bits of floats, cut towards zero. gcc finds the instructions for none of them in what plain C says.
#if defined(__AVX512F__)
static whole larger(whole x, whole y) { return (whole)_mm512_max_epi32((__m512i)x, (__m512i)y); }
static int any(whole x) { return _mm512_test_epi32_mask((__m512i)x, (__m512i)x) != 0; }
static whole cut_places(bits m) {
	return (whole)_mm512_cvt_roundepu32_ps((__m512i)m, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
#else
#if defined(__AVX2__)
static whole larger(whole x, whole y) { return (whole)_mm256_max_epi32((__m256i)x, (__m256i)y); }
static int any(whole x) { return !_mm256_testz_si256((__m256i)x, (__m256i)x); }
#else
static whole larger(whole x, whole y) { return choose(x > y, x, y); }
static int any(whole x) {
	int32_t u = 0;
	for (int i = 0; i < VECTOR; i++) u |= x[i];
	return u != 0;
}
#endif
static whole cut_places(bits m) {
	bits below = m >> 24; // a float has 24 places; these mark how many are cut
	below |= below >> 1;
	below |= below >> 2;
	below |= below >> 4;
	m &= ~below;
	return (whole)(__builtin_convertvector((whole)(m >> 16), number) * 0x1p16f +
		__builtin_convertvector((whole)(m & 0xffff), number));
}
#endif

// exponents returns those of numbers, and says in special which are infinite or NaN.
static whole exponents(whole x, whole *special) {
	const whole e = x >> 23 & 0xff;
	*special |= e == 0xff;
	return choose((x & INT32_MAX) == 0, all(ZERO), larger(e, all(1)) - 127);
}

void take_rows(struct rows *r, uint32_t x[TERMS / 2][ROWS]) {
	whole found = all(0);
	for (int i = 0; i < ROWS / VECTOR; i++) {
		r->special[i] = all(0);
		for (int k = 0; k < TERMS; k++) {
			whole w;
			memcpy(&w, &x[k / 2][i * VECTOR], sizeof w);
			w = k % 2 ? w & ~0xffff : w << 16;
			r->x[i][k] = (number)w;
			r->e[i][k] = exponents(w, &r->special[i]);
			found |= w;
		}
	}
	r->none = !any(found & INT32_MAX);
}

// add_column adds a column's products to the sums of VECTOR rows, of those that float32 has room for. It returns -1 for
// the others.
static whole add_column(uint32_t *acc, const number *x, const whole *e, const float *y, const int32_t *f) {
	whole was;
	memcpy(&was, acc, sizeof was);
	const whole exponent = larger(was >> 23 & 0xff, all(1)) - 127;
	whole top = choose((was & INT32_MAX) == 0, all(ZERO), exponent), sum = all(0);
	for (int k = 0; k < TERMS; k++) top = larger(top, e[k] + f[k]);
	const whole out = (top > HIGH) | ((top < LOW) & (top > 2 * LEAST));
	top = larger(top, all(LOW));
	const number units = (number)((PLACES + 127 - top) << 23); // 2^(PLACES-top)
	// A product has 27 bits, the sum of the products 31, and the sum with the addend 32.
	for (int k = 0; k < TERMS; k++) sum += __builtin_convertvector(x[k] * y[k] * units, whole);
	const whole last = __builtin_convertvector((number)was * units, whole);
	const whole total = (whole)((bits)sum + (bits)last);
	const whole sign = ((sum & last) | ((sum | last) & total)) >> 31;
	const whole cut = cut_places((bits)(total ^ sign) - (bits)sign);
	const whole result = (total != 0) & ((cut + ((top - PLACES) << 23)) | (sign & INT32_MIN));
	memcpy(acc, &result, sizeof result);
	return out;
}

// add_nothing adds products that are 0: of zeros, -0 becomes 0.
static void add_nothing(uint32_t *acc) {
	whole was;
	memcpy(&was, acc, sizeof was);
	was &= was != INT32_MIN;
	memcpy(acc, &was, sizeof was);
}

void add_products(uint32_t sum[COLUMNS][ROWS], const struct rows *r, uint16_t y[COLUMNS][TERMS]) {
	number x[TERMS / VECTOR];
	whole e[TERMS / VECTOR], alone[COLUMNS][ROWS / VECTOR], some = all(0);
	uint32_t before[COLUMNS][ROWS];
	int special[COLUMNS];
	memcpy(before, sum, sizeof before);
	for (int c = 0; c < COLUMNS; c++) {
		whole odd = all(0), found = all(0);
		for (int k = 0; k < TERMS / VECTOR; k++) {
			factors f;
			memcpy(&f, y[c] + k * VECTOR, sizeof f);
			const whole w = __builtin_convertvector(f, whole) << 16;
			x[k] = (number)w;
			e[k] = exponents(w, &odd);
			found |= w;
		}
		special[c] = any(odd);
		for (int i = 0; i < ROWS / VECTOR; i++) { // zeros are frequent, beyond the ends of a matrix
			uint32_t *acc = &sum[c][i * VECTOR];
			alone[c][i] = r->special[i] | -special[c];
			if (r->none || !any(found & INT32_MAX)) add_nothing(acc);
			else alone[c][i] |= add_column(acc, r->x[i], r->e[i], (const float *)x, (const int32_t *)e);
			some |= alone[c][i];
		}
	}
	if (!any(some)) return;
	for (int c = 0; c < COLUMNS; c++) {
		for (int row = 0; row < ROWS; row++) {
			const float *a = (const float *)r->x[row / VECTOR] + row % VECTOR;
			const uint32_t acc = before[c][row];
			if (!alone[c][row / VECTOR][row % VECTOR]) continue;
			if (special[c] || r->special[row / VECTOR][row % VECTOR] || (acc >> 23 & 0xff) == 0xff)
				sum[c][row] = special_sum(acc, a, y[c]);
			else sum[c][row] = sum_alone(acc, a, y[c]);
		}
	}
}

// Lane 4·g+q has rows g and g+8 of a, terms 2q, 2q+1, 2q+8 and 2q+9; column g of b, the same terms;
// and the sums of rows g and g+8 and columns 2q and 2q+1.
void matrix_product(words *all) {
	uint32_t a[TERMS / 2][ROWS], sum[COLUMNS][ROWS];
	uint16_t b[COLUMNS][TERMS];
	struct rows r;
	for (int l = 0; l < WARP; l++) {
		const int g = l / 4, q = l % 4;
		for (int i = 0; i < 4; i++) a[q + i / 2 * 4][g + i % 2 * 8] = all[l][i];
		for (int i = 0; i < 2; i++) memcpy(&b[g][2 * q + i * 8], &all[l][4 + i], 4);
		for (int i = 0; i < 4; i++) sum[2 * q + i % 2][g + i / 2 * 8] = all[l][6 + i];
	}
	take_rows(&r, a);
	add_products(sum, &r, b);
	for (int l = 0; l < WARP; l++)
		for (int i = 0; i < 4; i++) all[l][6 + i] = sum[l % 4 * 2 + i % 2][l / 4 + i / 2 * 8];
}
