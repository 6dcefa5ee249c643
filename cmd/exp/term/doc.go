// Package term knows terminals and how exp looks on them: size, colour, tables that fit,
// numbers with fixed digits, and the progress of a run as a live block, plain lines or
// JSON lines.
//
// It knows nothing of commands, stores or configurations, writes only to the writers it
// is given, and never reads from a terminal.
//
// # Why the live block is not built on mpb
//
// The block must survive a resize and another program writing to the same
// terminal. vbauerster/mpb leaves the cursor below its bars and moves up by a
// number of lines that it counted at the old width: after the terminal has
// re-wrapped the lines, or another program has written some, it erases lines
// that are not its own. It also takes the width from the device alone (so
// EXP_FORCE_TTY cannot reach it), holds permanent lines back until the next
// refresh, and draws from goroutines with its own clock, so exact output
// cannot be tested. live.go has the needed part instead: one block with the
// cursor resting on its top line.
package term
