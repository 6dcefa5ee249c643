package device

import "exp/kernels/cpu"

// LevelVariable is the environment variable that selects the level of the CPU kernels
// if Options do not.
const LevelVariable = cpu.LevelVariable

// AllLevels returns the levels of the CPU kernels, best first. In float32 all give the
// same bits.
func AllLevels() (names []string) {
	for l := cpu.AMX; l >= cpu.Portable; l-- {
		names = append(names, l.String())
	}
	return names
}

// CheckLevel returns an error if name is not a level.
func CheckLevel(name string) error {
	_, err := cpu.ParseLevel(name)
	return err
}

// DefaultLevel returns the level named by LevelVariable in the environment, else the
// best one. It returns an *Error for a level that does not exist or that this machine
// does not support.
func DefaultLevel(getenv func(string) string) (string, error) {
	level, err := cpu.DefaultLevel(getenv)
	if err != nil {
		return "", levelError(err)
	}
	return level.String(), nil
}

// Kernels describes the kernels that this machine's CPU supports.
type Kernels struct {
	Levels []string // plainest first
	Best   string   // the fastest of them
	BF16   BF16
}

// BF16 is how a CPU multiplies bf16.
type BF16 int

// All ways give the same bits.
const (
	Emulated   BF16 = iota // with float32 instructions
	NoMatrix               // as Emulated: there is a matrix unit, but the system refuses its registers
	Pairs                  // with products of pairs (AVX512-BF16)
	MatrixUnit             // with AMX
)

// OfThisMachine detects the kernels of this machine.
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
