// matrixunit.h declares the sums of tensor cores.
#ifndef EXP_CUDA_MATRIXUNIT_H
#define EXP_CUDA_MATRIXUNIT_H

#include <stdint.h>

enum { TERMS = 16, ROWS = 16, COLUMNS = 8 };

// VECTOR rows are added up at once.
#if defined(__AVX512F__)
enum { VECTOR = 16 };
#else
enum { VECTOR = 8 };
#endif
typedef int32_t whole __attribute__((vector_size(4 * VECTOR)));
typedef uint32_t bits __attribute__((vector_size(4 * VECTOR)));
typedef float number __attribute__((vector_size(4 * VECTOR)));

// struct rows has 16 terms of 16 rows, by terms: numbers, and exponents, those of zeros below all others. special is
// -1 for rows with an infinity or a NaN, and none says that all are zeros.
struct rows {
	number x[ROWS / VECTOR][TERMS];
	whole e[ROWS / VECTOR][TERMS], special[ROWS / VECTOR];
	int none;
};

// take_rows takes terms 2·i and 2·i+1 of a row from word i.
void take_rows(struct rows *r, uint32_t x[TERMS / 2][ROWS]);

// add_products adds to 16 × 8 sums, which lie by columns, the products of rows and of the 16 terms of columns.
void add_products(uint32_t sum[COLUMNS][ROWS], const struct rows *r, uint16_t y[COLUMNS][TERMS]);

#endif
