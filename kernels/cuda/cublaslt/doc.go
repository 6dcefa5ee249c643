// Package cublaslt multiplies matrices in device memory by NVIDIA's cuBLASLt, the yardstick for the
// products of package cuda. Only tests and benchmarks import it; the program never does. Open loads
// the library; nothing links it. Without build tag cuda the package is empty.
//
// Factors are bf16 and sums float32. There are no batches, no bias, and no search over algorithms:
// it takes the library's first choice.
package cublaslt
