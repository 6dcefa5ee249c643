#include "textflag.h"

// The program of process 1: ignore SIGCHLD, so that the kernel reaps orphans, become
// undumpable, then sleep until the other end of the pipe on descriptor 0 is closed, which
// the harness holds. It uses registers and its stack only.
TEXT ·initProcBegin(SB), NOSPLIT|NOFRAME, $0-0
	SUBQ $64, SP
	// struct sigaction {handler SIG_IGN = 1, flags 0, restorer 0, mask 0}
	MOVQ $1, 0(SP)
	MOVQ $0, 8(SP)
	MOVQ $0, 16(SP)
	MOVQ $0, 24(SP)
	MOVL $13, AX  // rt_sigaction(SIGCHLD, SP, nil, 8)
	MOVL $17, DI
	MOVQ SP, SI
	XORL DX, DX
	MOVL $8, R10
	SYSCALL
	MOVL $157, AX // prctl(PR_SET_DUMPABLE, 0)
	MOVL $4, DI
	XORL SI, SI
	SYSCALL
	MOVQ $0, 0(SP) // struct pollfd {fd 0, events 0}: POLLHUP always counts
	MOVL $7, AX    // poll(SP, 1, -1)
	MOVQ SP, DI
	MOVL $1, SI
	MOVQ $-1, DX
	SYSCALL
	MOVL $231, AX // exit_group(0)
	XORL DI, DI
	SYSCALL

TEXT ·initProcEnd(SB), NOSPLIT|NOFRAME, $0-0
	RET

// func initProcText() (begin, end uintptr)
TEXT ·initProcText(SB), NOSPLIT, $0-16
	LEAQ ·initProcBegin(SB), AX
	MOVQ AX, begin+0(FP)
	LEAQ ·initProcEnd(SB), AX
	MOVQ AX, end+8(FP)
	RET
