// Package cuda is the backend for NVIDIA GPUs, in numerics classes "cpu/fma" (float32) and
// "cpu/bf16", with the bits of the CPU. Without build tag cuda it only says what linear attention
// would need of a device; `make build` sets the tag. A program with it starts without a driver
// too: the driver's library is opened when somebody asks for a device (shim.c).
//
// DESIGN.md says how it is built, what has been proven where, and what has run on hardware.
package cuda
