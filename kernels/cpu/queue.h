// queue.h: operations on the same rows that run together, block of rows by block of rows
// (queue.go).
#ifndef EXP_CPU_QUEUE_H
#define EXP_CPU_QUEUE_H

#include "level/args.h"

#define QUEUE_OPS 128
#define QUEUE_SEES 2 // a model's layers have windows or see all

union row_args {
	struct matmul_args matmul;
	struct tile_matmul_args tile_matmul;
	struct swiglu_args swiglu;
	struct embed_args embed;
	struct norm_args norm;
	struct rope_args rope;
	struct append_args append;
	struct attention_args attention;
	struct tile_attention_args tile_attention;
	struct gate_args gate;
	struct columns_args columns;
	struct route_args route;
	struct combine_args combine;
	struct cap_args cap;
};

// A queued operation. Its units are blocks of rows, or per_row units per row.
struct queued {
	kernel fn; // null: nothing to do
	long per_row;
	union row_args args;
};

// What a job waits for, besides the job before it finishing the same block.
enum queue_wait {
	AFTER_NONE,
	AFTER_EARLIER, // until it has itself finished blocks see[s][b]..b-1, s its seeing
	AFTER_ALL,     // until the job before it has finished all blocks
};

// Operations first[j] to first[j+1] are job j: after wait[j], one thread runs them all on a
// block of rows (see `rows`). A thread takes each of the first `whole` blocks through all
// jobs; whole is 0 if a job waits for all.
struct queue {
	long jobs, blocks, whole;
	struct row_blocks rows;
	long m;
	int tiles; // rows are divided as in class "cpu/bf16"
	int waits; // some job has a wait other than AFTER_NONE
	char *done; // [jobs][blocks]
	int32_t *see; // [QUEUE_SEES][blocks]
	long first[QUEUE_OPS + 1];
	char wait[QUEUE_OPS], seeing[QUEUE_OPS];
	struct queued op[QUEUE_OPS];
};

// queue_row returns the first row of block b.
long queue_row(const struct queue *q, long b);

// queue_run is a kernel. Its units are the whole blocks, then the other blocks of job 0, of job 1,
// and so on. Threads must take them in that order.
void queue_run(const struct queue *q, long lo, long hi, int tid);

#endif
