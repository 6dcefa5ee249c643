#include "textflag.h"

// The program of process 1: ignore SIGCHLD, so that the kernel reaps orphans, become
// undumpable, then sleep until the other end of the pipe on descriptor 0 is closed, which
// the harness holds. It uses registers and its stack only.
TEXT ·initProcBegin(SB), NOSPLIT|NOFRAME, $0-0
	SUB  $64, RSP
	// struct sigaction {handler SIG_IGN = 1, flags 0, restorer 0, mask 0}
	MOVD $1, R9
	MOVD R9, 0(RSP)
	MOVD ZR, 8(RSP)
	MOVD ZR, 16(RSP)
	MOVD ZR, 24(RSP)
	MOVD $134, R8 // rt_sigaction(SIGCHLD, RSP, nil, 8)
	MOVD $17, R0
	MOVD RSP, R1
	MOVD ZR, R2
	MOVD $8, R3
	SVC
	MOVD $167, R8 // prctl(PR_SET_DUMPABLE, 0)
	MOVD $4, R0
	MOVD ZR, R1
	SVC
	MOVD ZR, 0(RSP) // struct pollfd {fd 0, events 0}: POLLHUP always counts
	MOVD $73, R8    // ppoll(RSP, 1, nil, nil, 8)
	MOVD RSP, R0
	MOVD $1, R1
	MOVD ZR, R2
	MOVD ZR, R3
	MOVD $8, R4
	SVC
	MOVD $94, R8    // exit_group(0)
	MOVD ZR, R0
	SVC

TEXT ·initProcEnd(SB), NOSPLIT|NOFRAME, $0-0
	RET

// func initProcText() (begin, end uintptr)
TEXT ·initProcText(SB), NOSPLIT, $0-16
	MOVD $·initProcBegin(SB), R0
	MOVD R0, begin+0(FP)
	MOVD $·initProcEnd(SB), R0
	MOVD R0, end+8(FP)
	RET
