//go:build cuda

package cuda

/*
#include "args.h"
*/
import "C"

import (
	"strings"
	"unsafe"

	"exp/kernels"
)

// Attention on tensor cores with factors in shared memory (panel.h).

// panels is a kernel whose blocks of some threads have the spans that begin within some rows, for a head, with shared
// bytes of memory from the launch.
type panels struct {
	name                  string
	rows, threads, shared int
}

// heads are the kernels of attention and of its gradients, with respect to queries, and to keys and values.
type heads struct {
	forward, dq, dkv panels
}

// The kernels. A row in shared memory takes panelRow bytes; two stages of rows are fetched.
var (
	panelHeads = heads{panels{"panel_attention", 128, headThreads, (128 + 2*2*32) * panelRow},
		panels{"panel_attention_dq", 128, headThreads, (2*128 + 2*2*16) * panelRow},
		panels{"panel_attention_dkv", 64, headThreads, (2*64+2*2*32)*panelRow + 2*32*3*4}}
	// By wgmma, for heads of up to 64 channels and up to 128.
	wgmmaHeads = [...]heads{wgmmaHeadsOf("_64"), wgmmaHeadsOf("_128")}
	// Rows are warps here.
	panelPagedAttention = panels{"panel_paged_attention", headWarps, headThreads, headWarps * 3 * 2 * 16 * panelRow}
)

func wgmmaHeadsOf(width string) heads {
	return heads{panels{"wgmma_attention" + width, 128, 384, C.WGMMA_ATTENTION_SHARED},
		panels{"wgmma_attention_dq" + width, 128, 384, C.WGMMA_DQ_SHARED},
		panels{"wgmma_attention_dkv" + width, 128, 384, C.WGMMA_DKV_SHARED}}
}

const (
	panelChannels = 128 // the widest head
	panelRow      = 2 * panelChannels
	headThreads   = headWarps * warpThreads
	wgmmaRows     = 64 // of a warpgroup
)

// fitsPanels reports whether heads fit into panels: others take the kernels of heads.h.
func fitsPanels(s kernels.AttentionShape) bool { return s.D%chunk == 0 && s.D <= panelChannels }

// inPanels reports whether the kernels of panels take rows of sequences. They have no register for an end of each row,
// so blocks of rows take the kernels of heads.h, too.
func inPanels(s kernels.AttentionShape) bool { return fitsPanels(s) && s.Ahead.Empty() }

// fullPanels have the kernels for rows that see all of their sequence. They are loaded when a model wants them.
var fullPanels = []string{"matrixfullpanel.ptx", "matrixfullpaneldq.ptx", "matrixfullpaneldkv.ptx"}

// pickAttention chooses the kernels for M rows of some sequences. By wgmma, caps would take too many registers, and
// there are no kernels for rows that see all of their sequence.
func (b *Backend) pickAttention(M, sequences int, s kernels.AttentionShape) heads {
	if s.Full {
		b.loadOnce(fullPanels)
		full := panelHeads
		for _, p := range []*panels{&full.forward, &full.dq, &full.dkv} {
			p.name = fullName(p.name)
		}
		return full
	}
	if s.Cap == 0 && b.wgmmaAttention(M, sequences, s.Window) {
		return wgmmaHeads[(s.D-1)/(panelChannels/2)]
	}
	return panelHeads
}

// fullName returns the name of the kernel for rows that see all of their sequence.
func fullName(name string) string { return strings.Replace(name, "attention", "full_attention", 1) }

// never keeps attention off wgmma.
func never(_, _, _ int) bool { return false }

// long reports whether sequences have rows for both warpgroups of a block on average, and rows see whole panels of
// keys.
func long(M, sequences, window int) bool {
	return M >= 2*wgmmaRows*sequences && (window == 0 || window >= 4*wgmmaRows)
}

// launchPanels queues a kernel on blocks for M rows and some heads.
func (b *Backend) launchPanels(p panels, M, heads int, args unsafe.Pointer) {
	b.launchShared(p.name, (M+p.rows-1)/p.rows*heads, p.threads, p.shared, args)
}

// headFactor returns M rows of heads, `width` elements each, aligned to chunks: in room if x is not.
func (b *Backend) headFactor(room *kernels.Buffer, x kernels.Buffer, M, width int) C.struct_operand {
	return C.struct_operand{at: b.factor(room, x, M, width).at, bf16: 1}
}
