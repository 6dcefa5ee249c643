// tensormap.h has the fake driver's tensor maps.
#ifndef EXP_FAKE_TENSORMAP_H
#define EXP_FAKE_TENSORMAP_H

#include <stdint.h>

struct tensor_map;

// read_box copies a box of a map, zeros for what lies outside the array, to place `to` of a block's shared memory.
// It returns how many bytes, 0 if this is no map.
int read_box(char *memory, uint32_t to, const struct tensor_map *map, long column, long row);

// swizzled is where the byte at a place of shared memory lies.
static inline uint32_t swizzled(uint32_t at) { return at ^ (at >> 7 & 7) << 4; }

#endif
