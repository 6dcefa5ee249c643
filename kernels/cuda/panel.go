//go:build cuda

package cuda

/*
#include "args.h"
*/
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// Attention on tensor cores with factors in shared memory (panel.h).

// panels is a kernel whose blocks have the spans that begin within some rows, for a head, with shared bytes of memory
// from the launch.
type panels struct {
	name         string
	rows, shared int
}

// The kernels. A row in shared memory takes panelRow bytes; two stages of rows are fetched.
var (
	panelAttention    = panels{"panel_attention", 128, (128 + 2*2*32) * panelRow}
	panelAttentionDQ  = panels{"panel_attention_dq", 128, (2*128 + 2*2*16) * panelRow}
	panelAttentionDKV = panels{"panel_attention_dkv", 64, (2*64+2*2*32)*panelRow + 2*32*3*4}
	// Rows are warps here.
	panelPagedAttention = panels{"panel_paged_attention", headWarps, headWarps * 3 * 2 * 16 * panelRow}
)

const (
	panelChannels = 128 // the widest head
	panelRow      = 2 * panelChannels
)

// inPanels reports whether heads fit into panels: others take the kernels of heads.h.
func inPanels(s kernels.AttentionShape) bool { return s.D%chunk == 0 && s.D <= panelChannels }

// launchPanels queues a kernel on blocks for M rows and some heads.
func (b *Backend) launchPanels(p panels, M, heads int, args unsafe.Pointer) {
	b.launchShared(p.name, (M+p.rows-1)/p.rows*heads, headWarps*warpThreads, p.shared, args)
}

// headFactor returns M rows of heads, `width` elements each, aligned to chunks: in room if x is not.
func (b *Backend) headFactor(room *kernels.Buffer, x kernels.Buffer, M, width int) C.struct_operand {
	return C.struct_operand{at: b.factor(room, x, M, width).at, bf16: 1}
}
