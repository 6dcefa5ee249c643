// matrixunit.h declares the sums of tensor cores.
#ifndef EXP_CUDA_MATRIXUNIT_H
#define EXP_CUDA_MATRIXUNIT_H

#include <stdint.h>

// add_products adds to 16 × 8 sums the products of 16 terms of x's rows and y's columns.
void add_products(uint32_t sum[16][8], uint16_t x[16][16], uint16_t y[8][16]);

#endif
