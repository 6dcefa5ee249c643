// Package kernels defines the operations a compute device needs to train and
// sample decoder-only transformers: about sixty coarse operations on typed
// buffers (Backend), each specified down to the bits of its result.
//
// It has no implementation. kernels/ref is the specification in plain loops,
// generic over float32 and float64; kernels/cpu is the fast backend;
// kernels/kerneltest tests any backend against ref.
//
// # Dims
//
// The letters are the same everywhere:
//
//	N  rows: tokens of all sequences of a batch, packed one after another
//	C  channels of the residual stream       V  vocabulary
//	H  query heads    K  key/value heads     D  head size
//	F  feed-forward width                    S  sequences
//	R  scored rows (positions whose next token has a log-prob)
//
// Shapes are row-major and written in brackets, x [N,C]. The weight of a linear
// map is [out,in], as Hugging Face stores it.
//
// # Which bits
//
// A numerics class names a set of rounding rules: backends of one class produce
// the same bits. "cpu/fma" is float32 with fused multiply-adds. The order of every
// reduction is part of the operation's definition. There are three kinds:
//
//   - A chain: acc = fma(a[i], b[i], acc) for i ascending, one rounding per term.
//     Matmuls, attention scores, attention values and all gradients that are
//     matmuls are chains. Fast code vectorises over outputs, never along a
//     chain; it may cut a chain anywhere if it continues from the partial
//     result.
//   - A lane sum: Lanes (16) accumulators, term i goes to lane i mod 16 in
//     ascending order, then lane[j] += lane[j+8], +4, +2, +1. Norms, softmax
//     denominators and entropies are lane sums. A lane sum of products uses fma
//     within each lane.
//   - A blocked sum, for gradients of parameters: the rows of a batch are cut
//     into blocks (see below); each block is a chain (or a plain sum in row
//     order) from zero, and the blocks are added to the gradient in order.
//
// Maxima are exact, so their order is free. exp, log and the logistic function
// are kernels/ref's (Exp, Log, Sigmoid): fixed polynomials evaluated with fma.
// Everything else is single IEEE operations in the order that the operation's
// comment states; a product and a sum are fused only where it says fma. All
// arithmetic is in the element type's precision, except in SumSquares.
//
// So a row's result depends on that row alone: not on the batch it is packed
// into, the number of threads, the page size of the KV cache, or whether a
// prefill, a decode step or a training forward pass computes it.
//
// # bf16
//
// Numerics class "cpu/bf16" trains with BF16 operands. Activations between
// matmuls are stored as BF16, which halves the memory traffic, and both factors of
// every product are rounded to BF16; parameters, their gradients, the residual
// stream, statistics and sums stay float32. It differs from "cpu/fma" in three
// points:
//
//   - An operand buffer is BF16. Reads are exact, stores round (Round of
//     kernels/ref: to nearest even, subnormals to zero).
//   - A chain becomes a tile sum. It takes its terms in steps of TileTerms (32),
//     counted from the first. In each step the even terms make one chain from 0
//     and the odd terms another, and acc = acc + (even + odd). Both factors are
//     rounded to BF16 first, products are exact, and results that 24 bits round to
//     less than 2⁻¹²⁶ become zeros of their signs. The matrix units of x86 (AMX,
//     TDPBF16PS) compute exactly this, and all other machines follow them.
//   - A gradient that is a blocked sum of chains is a tile sum that continues in
//     the gradient itself: a step is TileTerms rows of one block.
//
// Terms that a definition leaves out, such as keys after a query, and those that the last step
// lacks change no sum, not even -0. Only in the gradients of a key and its value are queries that do not see
// it products +0, from the step of the first that does to the sequence's last: they turn -0 into +0.
// The chains of linear attention (Recurrence) stay chains, of factors that are not rounded: its states are
// float32.
//
// Class "matrix/16x25" is "cpu/bf16" with the arithmetic of the matrix units in NVIDIA's Hopper and
// Blackwell: a tile sum becomes a matrix sum (MatrixSum of kernels/ref), whose steps have
// MatrixTerms (16) terms, and Embed rounds its weights to BF16. Attention goes over the keys once
// (MatrixKeys), so scores are subtracted from a maximum that may still rise. kernels/cpu computes
// it in integers on any machine. An H200 gives these bits (kernels/cuda/RESULTS.md).
//
// # Gradient blocks
//
// A parameter gradient sums over rows. To keep it independent of how a batch is
// cut into micro-batches, rows are reduced in blocks that depend on the sequences
// alone: a block is BlockRows consecutive rows of one sequence, or of several that
// share a prompt (the prompt's rows, then each completion's), counted from the
// first row; the last block may be shorter. A micro-batch holds whole sequences,
// and all that share a prompt, so it never cuts a block; processed in order,
// micro-batches give the same sum. Operations that reduce over rows take the block
// boundaries as an int32 buffer [blocks+1] of row offsets. The gradient of an
// embedding has no blocks: its rows are added one by one.
//
// So a gradient depends on which sequences share a prompt and on their order, and on nothing
// else about their packing. Package train cuts a mini-batch into slices, chooses both within
// each, and adds the slices' gradients in a binary tree (train/ranks, type Sum).
//
// Gradients of parameters are added to the buffer; gradients of activations
// overwrite it, unless the operation says otherwise.
//
// # Adding an operation
//
// Add the method with its definition here, the plain loop in kernels/ref (one
// file per operation), a case in kernels/kerneltest, then the fast version in
// kernels/cpu under the same file name.
package kernels

// Lanes is the number of partial sums of a lane sum. 16 float32 fill one
// AVX-512 register; narrower machines use several.
const Lanes = 16

// TileTerms is the number of terms in a step of a tile sum: one row of a matrix
// unit's register, 32 BF16.
const TileTerms = 32

// MatrixTerms is the number of terms in a step of a matrix sum: the depth of a matrix unit's
// instruction on Hopper and Blackwell.
const MatrixTerms = 16

// MatrixKeys is the number of keys that attention takes at once in class "matrix/16x25". Before it
// does, a row's maximum m becomes their largest score, but only if that exceeds m by more than
// MatrixRise: sums until then are multiplied by Exp of the difference. So no power exceeds Exp(8),
// except for scores from 2²⁷ on, and few steps multiply. Milakov and Gimelshein,
// arXiv:1805.02867; Dao et al., arXiv:2205.14135.
const (
	MatrixKeys = 32
	MatrixRise = 8
)

// BlockRows is the number of rows in a gradient block. 256 rows of a 32-column
// panel are 32 KiB: they stay in the first-level cache while a tile of the
// gradient is reduced, and adding a block to the gradient costs under 1 % of
// reducing it.
const BlockRows = 256
