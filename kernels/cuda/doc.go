// Package cuda is the backend for NVIDIA GPUs. Without build tag cuda it is empty; `make build`
// sets the tag. A program with it starts without a driver too: the driver's library is
// opened when somebody asks for a device (shim.c).
//
// The package has the operations of kernels.Memory so far, in numerics class "cpu/fma". DESIGN.md
// says how it is built and what has been proven where.
package cuda
