// steps.h goes over the terms of a product, DEPTH at a time.
#ifndef EXP_CUDA_STEPS_H
#define EXP_CUDA_STEPS_H

#include "gpu.h"

// Terms from `next` on, in blocks that end at `end`; blocks is null if there is one.
struct steps {
	const int *blocks;
	int left, next, end;
};

// settle goes to the next block that is not empty.
DEVICE void settle(struct steps *s) {
	while (s->next >= s->end && s->left > 0) {
		s->left--;
		s->next = s->blocks[0];
		s->end = s->blocks[1];
		s->blocks++;
	}
}

DEVICE struct steps steps_of(long terms) {
	struct steps s;
	s.blocks = 0;
	s.left = s.next = 0;
	s.end = (int)terms;
	return s;
}

DEVICE struct steps steps_between(long from, long end) {
	struct steps s = steps_of(end);
	s.next = (int)from;
	return s;
}

DEVICE struct steps steps_of_blocks(const int *blocks, long n) {
	struct steps s = steps_of(0);
	s.blocks = blocks;
	s.left = (int)n;
	settle(&s);
	return s;
}

DEVICE void advance(struct steps *s) {
	s->next += DEPTH;
	settle(s);
}

#endif
