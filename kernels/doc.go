// Package kernels defines what a compute device must be able to do so that the
// engine can train and sample decoder-only transformers on it: about forty
// coarse operations on typed buffers (Backend), and, for each, exactly which
// number it must produce.
//
// It holds no implementation. kernels/ref is the specification in plain loops,
// generic over float32 and float64; kernels/cpu is the fast backend;
// kernels/kerneltest runs any backend against ref.
//
// # Dims
//
// The same letters everywhere:
//
//	N  rows: tokens of all sequences of a batch, packed one after another
//	C  channels of the residual stream       V  vocabulary
//	H  query heads    K  key/value heads     D  head size
//	F  feed-forward width                    S  sequences
//	R  scored rows (positions whose next token has a log-prob)
//
// Shapes are row-major and written in brackets, x [N,C]. A linear map has its
// weight as Hugging Face stores it, [out,in].
//
// # Which bits
//
// In float32 every backend of numerics class "cpu/fma" produces the same bits,
// because the order of every reduction is part of the definition of the
// operation. Three kinds of reduction exist:
//
//   - A chain: acc = fma(a[i], b[i], acc) for i ascending, one rounding a term.
//     Matmuls, attention scores, attention values and all gradients that are
//     matmuls are chains. Fast code vectorises over outputs, never along a
//     chain; it may cut a chain anywhere if it continues from the partial
//     result.
//   - A lane sum: Lanes (16) accumulators, term i goes to lane i mod 16 in
//     ascending order, then lane[j] += lane[j+8], +4, +2, +1. Norms, softmax
//     denominators and entropies are lane sums. A lane sum of products uses fma
//     within its lane.
//   - A blocked sum, for gradients of parameters: the rows of a batch are cut
//     into blocks (see below); each block is a chain (or a plain sum in row
//     order) from zero, and the blocks are added to the gradient in order.
//
// Maxima are exact, hence free of order. exp, log and the logistic function are
// the ones of kernels/ref (Exp, Log, Sigmoid): fixed polynomials evaluated with
// fma. Everything else is single IEEE operations in the order that the
// operation's comment states; a product and a sum are fused only where it says
// fma. The element type's precision is used throughout, but for SumSquares.
//
// So a row's result depends on that row alone: not on the batch it is packed
// into, the number of threads, the page size of the KV cache, or whether it is
// computed by a prefill, a decode step or a training forward pass.
//
// # bf16
//
// Numerics class "cpu/bf16" trains with BF16 operands: what stands between two
// matmuls is stored as BF16, half the memory traffic, and every factor of a
// product is rounded to it; parameters, their gradients, the residual stream,
// statistics and sums stay float32. Its operations are those of "cpu/fma" but for
// three points:
//
//   - An operand buffer is BF16. It is read exactly, and what is stored in it is
//     rounded (Round of kernels/ref: to nearest even, subnormals to zero).
//   - A chain becomes a tile sum. Its terms are taken TileTerms (32) at a time,
//     counted from the chain's first; of such a step, the even terms make one
//     chain from 0 and the odd terms another, and acc = acc + (even + odd). Both
//     factors are rounded to BF16 first, products are exact, and subnormal
//     results count as zero: it is what the matrix units of x86 (AMX, TDPBF16PS)
//     compute, here for everybody.
//   - A gradient that is a blocked sum of chains is a tile sum that continues in
//     the gradient itself: a step is TileTerms rows of one block.
//
// Terms that a definition leaves out, such as keys after a query, count as
// products 0, which change no sum.
//
// # Gradient blocks
//
// A parameter gradient sums over rows. To keep it independent of how a batch is
// cut into micro-batches, the rows are reduced by blocks that are chosen from
// the sequences alone: a block is BlockRows consecutive rows of one sequence, or of
// several that share a prompt (a prompt's rows, then those of each completion),
// counted from the first row, the last one shorter. A micro-batch
// holds whole sequences, and all of those that share a prompt, so no block is ever cut;
// and as long as micro-batches
// are processed in order, the gradient is the same sum. Operations that reduce
// over rows take the block boundaries as an int32 buffer [blocks+1] of row
// offsets. The gradient of an embedding has no blocks: its rows are added one by one.
//
// So a gradient does depend on which sequences of a mini-batch share a prompt and on
// their order, which whoever makes the mini-batch chooses, but on nothing else of how
// they are packed.
//
// Gradients of parameters are added to what the buffer holds; gradients of
// activations overwrite it, unless the operation says otherwise.
//
// # Adding an operation
//
// Add the method here with its definition, the plain loop in kernels/ref (one
// file per operation), a case in kernels/kerneltest, and then the fast version
// in kernels/cpu under the same file name.
package kernels

// Lanes is the number of partial sums of a lane sum. 16 float32 fill one
// AVX-512 register; narrower machines keep several registers.
const Lanes = 16

// TileTerms is the number of terms of a step of a tile sum: a row of a matrix
// unit's register holds 32 BF16.
const TileTerms = 32

// BlockRows is the number of rows in a gradient block. 256 rows of a panel of
// 32 columns are 32 KiB: they stay in the first-level cache while a tile of the
// gradient is reduced, and adding a block to the gradient costs under 1 % of
// reducing it.
const BlockRows = 256
