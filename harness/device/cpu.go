package device

import "exp/kernels/cpu"

// LevelVariable is the environment variable that names the level of the processor's
// kernels where Options name none.
const LevelVariable = cpu.LevelVariable

// AllLevels are the levels of the processor's kernels, the best first. In float32 all give
// the same bits.
func AllLevels() (names []string) {
	for l := cpu.AMX; l >= cpu.Portable; l-- {
		names = append(names, l.String())
	}
	return names
}

// CheckLevel returns an error for a name that is not a level.
func CheckLevel(name string) error {
	_, err := cpu.ParseLevel(name)
	return err
}

// DefaultLevel is the level at which a run computes: the one that LevelVariable names in
// the environment, else the best. The error, for a level that does not exist or that this
// machine does not run, is an *Error.
func DefaultLevel(getenv func(string) string) (string, error) {
	level, err := cpu.DefaultLevel(getenv)
	if err != nil {
		return "", levelError(err)
	}
	return level.String(), nil
}

// Kernels are those that the processor of this machine runs.
type Kernels struct {
	Levels []string // the plainest first
	Best   string   // the fastest of them
	BF16   BF16
}

// BF16 is how a processor multiplies bf16.
type BF16 int

// The ways. All give the same bits.
const (
	Emulated   BF16 = iota // with float32 instructions
	NoMatrix               // the same, though there is a matrix unit: the system refuses its registers
	Pairs                  // with products of pairs (AVX512-BF16)
	MatrixUnit             // with AMX
)

// OfThisMachine looks at the machine.
func OfThisMachine() Kernels {
	best := cpu.BestLevel()
	k := Kernels{Best: best.String()}
	for l := cpu.Portable; l <= cpu.AMX; l++ {
		if l.Supported() {
			k.Levels = append(k.Levels, l.String())
		}
	}
	switch {
	case best == cpu.AMX:
		k.BF16 = MatrixUnit
	case cpu.RefusesAMX():
		k.BF16 = NoMatrix
	case best == cpu.AVX512BF16:
		k.BF16 = Pairs
	}
	return k
}
