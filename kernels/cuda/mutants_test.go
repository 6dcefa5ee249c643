//go:build cuda

package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A mutant is one change of the kernels, and the check that must fail on it. A check may begin with the
// settings of the fake driver.
var mutants = []struct{ name, file, from, to, check string }{
	{"no bound", "matmul.cu", "if (m >= a.M) return;", "", "bf16/MatMul"},
	{"chain backwards", "attend.h", "add_product(p[i][e], q[j][e], *to)", "add_product(p[i][e ^ 1], q[j][e ^ 1], *to)", "f32/Attention"},
	{"blocks in one chain", "products.h", "		no_sums(acc);\n		tile_products", "		if (b == 0) no_sums(acc);\n		tile_products", "f32/MatMulDW"},
	{"lanes shifted", "num.h", "lane[j] = fmaf(load(x", "lane[j / 2] = fmaf(load(x", "f32/Combine"},
	{"lanes folded upwards", "warp.h", "for (int w = LANES / 2; w > 0; w /= 2) x += shuffle_xor(x, w);", "for (int w = 1; w < LANES; w *= 2) x += shuffle_xor(x, w);", "f32/RMSNorm"},
	{"a norm not awaited", "rmsnorm.cu", "	barrier();\n	if (mine", "	if (mine", "f32/RMSNorm"},
	{"a long norm not awaited", "rmsnorm.cu", "	barrier();\n	if (threadIdx.x < WARP) {", "	if (threadIdx.x < WARP) {", "TestLongNorms"},
	{"weights of the first round", "rmsnorm.cu", "scale_of(k ? weight[1][j] :", "scale_of(0 ? weight[1][j] :", "TestLongNorms"},
	{"blocks in a sum of their own", "sums.h", "float sum = dst[column()];\n		for (long w = 0; w < SUM_WARPS && w < left; w++) sum += sums[w * WARP + threadIdx.x];", "float sum = 0;\n		for (long w = 0; w < SUM_WARPS && w < left; w++) sum += sums[w * WARP + threadIdx.x];\n		sum += dst[column()];", "f32/RMSNormBackward"},
	{"equal ids backwards", "embedding.cu", "for (long row = k - lane; same; row++, same >>= 1) {\n			if (!(same & 1)) continue;", "for (long row = k - lane + 31; same; row--, same <<= 1) {\n			if (!(same >> 31)) continue;", "f32/EmbedBackward"},
	{"prefix without its group", "attend.h", "? a.p.groups[g + 1] - 1 : j;", "? j : j;", "f32/AttentionBackward"},
	{"few ties by the higher id", "samplefew.cu", "z[i] == z[j] && i < j", "z[i] == z[j] && i > j", "f32/Sample"},
	{"a slope without its density", "num.h", "y.slope = (float)(n.cdf + x * n.pdf);", "y.slope = (float)n.cdf;", "f32/Gate"},
	{"penalties that help", "adjust.cu", "x / a.factor[i] : x * a.factor[i]", "x / a.factor[i] : x / a.factor[i]", "f32/Sample/adjusted"},
	{"scores of adjusted logits", "adjust.cu", "a.z[i / a.K * a.V + a.ids[i]] = a.kept[i];", "(void)a.z;", "f32/Sample/adjusted"},
	{"a mask shifted", "adjust.cu", ">> (v % 32) & 1", ">> ((v + 1) % 32) & 1", "f32/Sample/masked"},
	{"few first tokens of all", "samplefew.cu", "drop_first(heap, z, a.V - i);", "drop_first(heap, z, a.V);", "f32/TopTokens"},
	{"first tokens that are not kept", "sample.cu", "last_kept(room, t, a.K, 0, x.sum), UNSURE);", "last_kept(room, t, a.K + 1, 0, x.sum), UNSURE);", "f32/TopTokens/long"},
	{"one target of several", "targets.cu", "i < r * a->K + n; i++", "i < r * a->K + (n > 0); i++", "f32/LogProbBackward"},
	{"ties by the higher id", "sample.cu", "(uint32_t)~v;\n}", "(uint32_t)v;\n}", "TestLongRows"},
	{"a piece of the row twice", "row.h", "room->e[piece ^ 1]", "room->e[piece]", "TestLongRows"},
	{"the sum before the last sample block", "sample.cu", "found ? room->u.sums[found - 1] : sum", "found > 1 ? room->u.sums[found - 2] : sum", "TestLongRows"},
	{"the last kept token dropped", "sample.cu", "return rank_of(z, v) < t.end ||", "return rank_of(z, v) <= t.end ||", "TestLongRows"},
	{"the bin after the right one", "sample.cu", "if (before >= n) room->bin", "if (before > n) room->bin", "f32/Sample/long"},
	{"weights in order from the middle", "sample.cu", "s.above = exact ? room->above : 0;", "s.above = 0;", "TestLimitAtARunningSum"},
	{"one chain for even and odd", "sum.h", "if (i % 2) odd", "if (0) odd", "bf16/MatMul"},
	{"subnormal products", "sum.h", "odd = fma_flushed(p, q, odd)", "odd = fmaf(p, q, odd)", "bf16/MatMul/tiny"},
	{"blocks in steps of all rows", "matmul.cu", "x, rows, a.dw[i])", "x, rows, 0)", "bf16/MatMulDW"},
	{"gates not rounded", "matmul.cu", "if (a.tile) g = rounded(g), u = rounded(u);", "", "bf16/MatMulSwiGLU"},
	{"probabilities not rounded", "attend.h", "TILED ? rounded(e) : e", "e", "bf16/Attention"},
	{"keys before a query alone", "attend.h", "return ends ? ends[", "return 0 ? ends[", "f32/FullAttention/shapes"},
	{"keys of the block's rows alone", "attend.h", "return LOOKS_AHEAD ? end_seen(s, x.seq, end - 1) :", "return", "bf16/FullAttention/pages"},
	{"queries from a key on", "attend.h", "from = LOOKS_AHEAD ? first", "from = LOOKS_AHEAD > 1 ? first", "TestAttendAhead"},
	{"queries of a key's own step", "attend.h", "t = (x.n + i) / TILE_TERMS * TILE_TERMS;", "t = x.n + i;", "bf16/AheadAttention/steps"},
	{"a query's own key as its last", "attend.h", "room->ends[threadIdx.x] = there ? end_seen(a->s, seq, n) : 0;", "room->ends[threadIdx.x] = n + 1;", "f32/AheadAttention/backward"},
	{"blocks at positions, not rows", "sequence.h", "n + 1 + s.ahead[row_of(seq, n)]", "n + 1 + s.ahead[n]", "bf16/AheadAttention/shapes"},
	{"a block's first query late", "sequence.h", "if (end_seen(s, seq, mid) > t) hi = mid;", "if (end_seen(s, seq, mid) > t + 1) hi = mid;", "TestAttendAhead"},
	{"all of a sequence for a block", "sequence.h", "return s.ahead ?", "return 0 ?", "matrix/AheadAttention/shapes"},
	{"pages up to a row alone", "sequence.h", " + (a->s.ahead ? a->s.ahead[row] : 0)", "", "f32/AheadAttention/rows"},
	{"pages of another row", "sequence.h", "(a->s.ahead ? a->s.ahead[row] : 0)", "(a->s.ahead ? a->s.ahead[0] : 0)", "matrix/AheadAttention/rows"},
	{"windows that move with a block", "matrixpagedattention.cu", "from = first_seen(s, a.pos[row])", "from = first_seen(s, n)", "matrix/AheadAttention/rows"},
	{"windows of panels that move", "matrixpanelpages.cu", "first_seen(*s, a->pos[row])", "first_seen(*s, n)", "TestPanelsOfPages"},
	{"keys before a window", "heads.h", "return key >= seen.from && key < seen.end;", "return key < seen.end;", "matrix/AheadAttention/shapes"},
	{"keys behind a block", "heads.h", "return key >= seen.from && key < seen.end;", "return key >= seen.from;", "matrix/AheadAttention/shapes"},
	{"what another query sees", "heads.h", "computed_here(s.by_keys ? position : row)", "computed_here(row)", "matrix/AheadAttention/backward"},
	{"keys of a span alone", "heads.h", "LOOKS_AHEAD ? end_seen(s, x.seq, x.hi - 1) :", "", "matrix/AheadAttention/shapes"},
	{"queries from a key's step on", "warpattention.h", "(LOOKS_AHEAD ? first_seeing(s, seq, x.base) : own)", "own", "matrix/AheadAttention/backward"},
	{"keys that do not exist", "heads.h", "	return key + STEP > s.keys;", "	return 0;", "matrix/FullAttention/shapes"},
	{"keys of a span's rows alone", "heads.h", "return FULL ? x.seq.own :", "return", "TestPanels"},
	{"queries from a key's span on", "turns.h", "n->t = FULL ? 0 :", "n->t =", "TestPanels"},
	{"a step of no terms", "attend.h", "else if (terms[i])", "else", "bf16/Attention/tiny"},
	{"no zeros after a window", "attend.h", "#define NO_PRODUCT (TILED ? 0x7f800002 : NO_TERM)", "#define NO_PRODUCT NO_TERM", "bf16/Attention/tiny"},
	{"a panel of keys not awaited", "attend.h", "		await_copies(0);\n", "		await_copies(1);\n", "f32/Attention"},
	{"panels filled too early", "attend.h", "		barrier(); // the panels have been read\n", "", "f32/Attention"},
	{"a panel of values filled too early", "attend.h", "			barrier(); // the panel has been read, and the weights are there\n", "", "f32/Attention"},
	{"pages between windows", "attend.h", "first_seen(a->s, a->pos[m - 1]) <= end_in_pages(a, m);", "1;", "TestAttendPages"},
	{"a key's queries of other heads", "attend.h", "h < (kv + 1) * share; h++", "h < kv * share + 1; h++", "f32/AttentionBackward"},
	{"rows of another sequence in pages", "attend.h", " || a->seq[m - 1] != a->seq[m]) return 0;", ") return 0;", "order=1:f32/PagedAttention"},
	{"subnormal weights", "copy.cu", "KERNEL(flush_bf16) { convert(bf16s(a.dst), bf16s(a.src), a.n); }", "KERNEL(flush_bf16) { (void)a; }", "bf16/Frozen/subnormals"},
	{"a stage not awaited", "tile.h", "await_copies(STAGES - 2);", "await_copies(STAGES - 1);", "matrix/MatMul/shapes"},
	{"steps swapped", "tile.h", "for (int k = 0; k < DEPTH; k += STEP) {\n		if (k >= n) break;", "for (int k = STEP; k >= 0; k -= STEP) {\n		if (k >= n) continue;", "matrix/MatMul/shapes"},
	{"a stage past the end", "tile.h", "t < end ? from : 0", "1 ? from : 0", "matrix/MatMulDW"},
	{"zeros after a chain", "tile.h", "n - k < 4 ? (int)(n - k) : 4", "4", "f32/MatMul/tiny"},
	{"chunks that are not aligned", "tile.h", "s.words = CHUNK == 4 &&", "s.words = 0 &&", "f32/MatMul/shapes"},
	{"ups for gates", "tile.h", "second ? 2 * f.half : f.half", "f.half", "matrix/MatMulSwiGLU"},
	{"sums not met", "tile.h", "	meet();\n	EACH_SUM(j, e) room[", "	EACH_SUM(j, e) room[", "matrix/MatMul/shapes"},
	{"keys after a query", "heads.h", "return key <= query &&", "return", "matrix/Attention/shapes"},
	{"infinite values that no row sees", "heads.h", "if (!is_partial(s)) return 0;", "return 0;", "matrix/Attention/infinite"},
	{"own keys alone", "warpattention.h", "? a->p.groups[group + 1] - 1 : j;", "? j : j;", "matrix/AttentionBackward"},
	{"pages before a window", "matrixpagedattention.cu", "if (at < from || at > n) z", "if (at > n) z", "matrix/PagedAttention/window"},
	{"a panel not awaited", "panelattention.h", "await_copies(0);\n		barrier(); // all see", "await_copies(1);\n		barrier(); // all see", "matrix/Attention/shapes"},
	{"a panel fetched too early", "panelattention.h", "		barrier(); // all see", "		// all see", "matrix/Attention/shapes"},
	{"keys after a query in panels", "heads.h", "if (!is_partial(s)) return;\n", "return;\n", "matrix/Attention/shapes"},
	{"chunks of another row", "panel.h", "(c ^ r % 8)", "(c ^ (r + 8 * (r > 31)) % 7)", "matrix/Attention/shapes"},
	{"gradients of keys that no row sees", "paneldq.h", "dp[p][j][e] = 0;", "dp[p][j][e] = dp[p][j][e];", "matrix/AttentionBackward"},
	{"own keys in panels alone", "paneldkv.h", "? a->p.groups[group + 1] - 1 : j;", "? j : j;", "matrix/AttentionBackward"},
	{"a head twice", "turns.h", "if (++n->h % share == 0) {", "if (++n->h % share == 1 % share) {", "matrix/AttentionBackward"},
	{"own queries alone", "wgmmaattentiondkv.cu", "? a->p.groups[group + 1] - 1 : j;", "? j : j;", "TestWgmmaAttention"},
	{"infinite queries before a key", "wgmmaattentiondkv.cu", "!all_see(step, base, now->t) &&", "0 &&", "TestWgmmaAttention"},
	{"infinite keys after a query", "wgmmaattentiondq.cu", "!sees_all(step, base) &&", "0 &&", "TestWgmmaAttention"},
	{"sums that do not move", "wgmma.h", "sum[j + by][e]", "sum[j][e]", "TestWgmmaBits"},
	{"sums that do not rise", "heads.h", "sum[j][e] *= factor[e / 2]", "(void)0", "TestWgmmaAttention"},
	{"lanes that rise alone", "heads.h", "largest = largest_of(top[i])", "largest = top[i]", "TestWgmmaAttention"},
	{"values of a step that is not there", "matrixpanelpages.cu", "p->values.t / KEYS * KEYS <= n", "p->values.t <= n", "TestPanelsOfPages"},
	{"a page that is none", "matrixpanelpages.cu", " && p.t + STEP > from", "", "TestPanelsOfPages"},
	{"values of the keys before", "matrixpanelpages.cu", "p.ahead = p.at = 0;", "p.ahead = 0, p.at = 5;", "TestPanelsOfPages"},
	{"values that do not exist", "matrixpanelpages.cu", "there = t >= from && t <= n", "there = t >= from", "TestPanelsOfPages"},
	{"powers of the wrong sign", "num.h", "(bits_of(shifted) << 23) + 0x3f800000", "(bits_of(shifted) << 23) + 0x3f000000", "matrix/Attention/shapes"},
	{"one word of four", "dropout.cu", "k += 4) philox(word + k, a.keys[2 * m], a.keys[2 * m + 1], (c + k) / 4,", "k += 4) philox(word + k, a.keys[2 * m], a.keys[2 * m + 1], c / 4,", "f32/Dropout"},
	{"segments of other rows", "rows.cu", "if (m < lo || m >= hi) continue;", "if (m < lo) continue;", "f32/SegmentMean"},
	{"pages read before they are written", "pagedattention.cu", "written |= pair[2 * j + 1] == pair[2 * n];", "written = 0;", "f32/CopyPages"},
	{"vectors past the end", "wide.h", "left >= WIDE && ((", "((", "f32/Rope"},
	{"vectors that are not aligned", "wide.h", "((uint64_t)at & 15) == 0 ?", "1 ?", "f32/Add"},
	{"the end dropped", "wide.h", "j < left ? load", "j < left - 1 ? load", "f32/Add"},
	{"odd elements first", "wide.h", "float_of(j % 2 ?", "float_of(j % 2 == 0 ?", "matrix/Rope"},
	{"a box not awaited", "wgmma.h", "await_phase(&p->full[p->at], p->parity);", "", "TestWgmmaBits"},
	{"a full stage filled again", "wgmma.h", "		await_phase(&p->empty[p->at], p->parity ^ 1);\n", "", "order=1:TestWgmmaBits"},
	{"products of the stage before", "wgmma.h", "p->stages + p->at * STAGE_BYTES;\n		const int terms", "p->stages + (p->at + STAGES - 1) % STAGES * STAGE_BYTES;\n		const int terms", "TestWgmmaBits"},
	{"a stage left too early", "wgmma.h", "leave(p, before);\n		before = p->at;", "leave(p, p->at);\n		before = -1;", "order=2:TestWgmmaBits"},
	{"terms of the next step", "warpgroup.h", "STEP * 2 : STEP * LINE", "STEP * 2 : 2 * STEP * LINE", "TestWgmmaBits"},
	{"lines of another swizzle", "warpgroup.h", "(uint64_t)(EIGHT_LINES >> 4) << 32", "(uint64_t)(EIGHT_LINES >> 5) << 32", "TestWgmmaBits"},
	{"boxes of another width", "warpgroup.h", "wide ? wide >> 4 : 1", "wide ? wide >> 5 : 1", "TestWgmmaBits"},
	{"rows of the next block", "wgmma.h", "if (!x_by_terms && terms % STEP) clear_terms", "if (0) clear_terms", "TestWgmmaBits"},
	{"both halves of the columns the same", "wgmma.h", "return t.n + rank_of_block() * PART_COLUMNS;", "return t.n;", "TestWgmmaBits"},
	{"half of the warps awaited", "wgmma.h", "(CLUSTER * GROUPS * GROUP_THREADS / WARP)", "(GROUPS * GROUP_THREADS / WARP)", "TestWgmmaBits"},
	{"zeros not awaited", "wgmma.h", "	group_barrier(1 + group, GROUP_THREADS);\n}", "}", "order=1:TestWgmmaBits"},
	{"subnormal outputs", "wgmma.h", "both(sign_or(v[0]), sign_or(v[1]))", "both(v[0], v[1])", "TestWgmmaBits"},
	{"ups of other gates", "wgmma.h", "t.m / 2 + i / 2 * 8", "t.m / 2 + i * 8", "TestWgmmaBits"},
	{"sums not fenced", "wgmma.h", "		open_products();\n", "", "TestWgmmaBits"},
	{"no products awaited", "wgmma.h", "	await_products(0);\n", "", "TestWgmmaBits"},
	{"keys not awaited", "ring.h", "	await_phase(full_of(r, at), r->parity);\n", "", "TestWgmmaAttention"},
	{"a full stage of keys filled again", "wgmmaattention.cu", "		await_phase(empty_of(r, r->at), r->parity ^ 1);\n", "", "TestWgmmaAttention"},
	{"copies told too early", "ring.h", "		await_copies(1);\n", "", "TestWgmmaAttention"},
	{"queries of the other warpgroup", "wgmmaattention.cu", "group * OWN;", "0 * group;", "TestWgmmaAttention"},
	{"infinite values by wgmma", "wgmmaattention.cu",
		"if (!sees_all(step, base) && has_infinite(r, boxes)) break;", "", "TestWgmmaAttention"},
	{"values left too early", "wgmmaattention.cu",
		"			leave(r, held);\n			leave(r, keys);", "			leave(r, keys);\n			leave(r, r->at);", "order=2:TestWgmmaAttention"},
	{"embedding not rounded", "embedding.cu", "a.round ? rounded(w[j]) : w[j]", "w[j]", "matrix/Embed"},
	{"rows of a column out of order", "matmul.cu", "sum += v[k];", "sum += v[k ^ 1];", "f32/MatMulDW"},
	{"a scale that is not kept", "rmsnorm.cu", "r = kept[1]", "r = kept[2]", "TestLongNorms"},
	{"a row not awaited", "deltarule.cu", "		barrier(); // the row is there", "		// the row is there", "f32/DeltaRule/sequences"},
	{"keys of another head", "deltarow.h", "(int)(vh / shared_by(s))", "(int)(vh % s.keys)", "f32/DeltaRule/sequences"},
	{"states kept late", "deltarule.cu", "own % DELTA_KEEP == 0", "own % DELTA_KEEP == 1", "f32/DeltaRuleBackward"},
	{"columns of the first lanes", "deltaruleback.cu", "k < halves; k++) sum += room.sums", "k < 1; k++) sum += room.sums", "f32/DeltaRuleBackward"},
	{"the last sequence of a group", "deltaruleback.cu", "dS[(i + j) * step] += start", "dS[(i + j) * step] = start", "f32/DeltaRuleBackward"},
	{"heads that share a key apart", "deltaruleback.cu", "sum = a->first ? 0 : *to;", "sum = 0;", "f32/DeltaRuleBackward"},
	{"gates of the last columns", "deltaruleback.cu", "sum = a->column ? *to : 0;", "sum = 0;", "f32/DeltaRuleBackward"},
	{"a row filled too early", "deltaruleback.cu", "	barrier(); // the one before it has been read\n", "", "f32/DeltaRuleBackward"},
	{"lanes spread upwards", "deltaruleback.cu", "(high ? up : low) + shuffle_xor(high ? low : up, w)", "(high ? low : up) + shuffle_xor(high ? up : low, w)", "f32/DeltaRuleBackward"},
	{"an end moved over itself", "shortconv.cu", "for (long k = 0; k < taps - 1; k++) {\n		load_input", "for (long k = taps - 2; k >= 0; k--) {\n		load_input", "f32/ShortConv/steps"},
	{"a gradient without its factor", "shortconv.cu", "EACH_WIDE(k) d[k] = k < r.left ? sum[k] * x[k] : 0;", "EACH_WIDE(k) d[k] = sum[k];", "f32/GatedConvBackward"},
	{"products of few channels", "shortconv.cu", "EACH_WIDE(i) if (i < r.left) v[i] *= factor[i];", "if (r.left >= WIDE) EACH_WIDE(i) v[i] *= factor[i];", "f32/GatedConv/sequences"},
	{"weights of three taps", "shortconv.cu", "load_wide(w + k * WIDE, floats(weight), usual * r.c + k * WIDE, WIDE)", "load_wide(w + k * WIDE, floats(weight), 4 * r.c + k * WIDE, WIDE)", "f32/GatedConv/sequences"},
	{"own rows of a prompt", "shortconv.cu", "a.p.groups[at.g] == at.j &&", "0 &&", "f32/ShortConvBackward"},
	{"softplus of large numbers", "deltagates.cu", "	if (x > 20) return x;\n", "", "f32/DeltaGates"},
	{"gates of the first head by key", "delta.h", "(shared_by(s) + h % shared_by(s))", "shared_by(s)", "f32/GatedNorm"},
	{"neighbours a head apart", "rope.cu", "(neighbours ? WIDE : a.half)", "a.half", "f32/Rope"},
	{"keys that are not shared", "latent.cu", "a.rope, m * a.s.rope + rope);\n\t} else", "a.rope, rope);\n\t} else", "f32/JoinLatent"},
	{"the first head's gradient alone", "latent.cu", "k < a.s.H; k++) sum", "k < 1; k++) sum", "f32/JoinLatent"},
	{"values that are not padded", "latent.cu", "i < a.s.value ? a.kv : none", "a.kv", "f32/JoinLatent"},
	{"experts of all groups", "experts.cu", "groups >> o / size & 1 && precedes", "precedes", "f32/Route"},
	{"a weight with the bias", "experts.cu", "w[n++] = p[e];", "w[n++] = score;", "f32/Route"},
	{"a sink of another head", "sink.cu", "sinks[v % H]", "sinks[v / H % H]", "f32/Sink"},
	{"a sink's term of the keys", "sink.cu", "t * (1 - share)", "t * share", "f32/SinkBackward"},
	{"a block's first row alone", "sink.cu", "sum -= a.terms[m * a.H + h]", "sum = -a.terms[m * a.H + h]", "f32/SinkBackward"},
	{"a negative part above its limit", "xielu.cu", "exp64(g < a.eps ? g : a.eps)", "exp64(g)", "f32/XIELU"},
	{"a slope above the limit", "xielu.cu", "(g < a.eps ? e : 0)", "e", "f32/XIELUBackward"},
	{"a block's last row alone", "xielu.cu", "sum += a.terms[2 * m + k]", "sum = a.terms[2 * m + k]", "f32/XIELUBackward"},
	{"gradients beyond the limit below", "clip.cu", "x[j] > a.limit || x[j] < -a.limit ? 0", "x[j] > a.limit ? 0", "f32/Clip"},
	{"ups that are not clamped below", "gate.cu", "u < -GATE_LIMIT ? -GATE_LIMIT : u", "u", "f32/Gate"},
	{"stats of the last columns", "attend.h", "d == 0 && v.stats", "d > 0 && v.stats", "f32/PagedAttention/rows"},
	{"a gate's own head", "outputgate.cu", "(2 * h + 1) * s.D", "(2 * h) * s.D", "f32/OutputGate"},
}

// A mutant whose line has moved or changed says so here, where no driver is needed.
func TestMutantsFindTheirLines(t *testing.T) {
	for _, m := range mutants {
		if !strings.Contains(read(t, m.file), m.from) {
			t.Errorf("%s: %s does not contain %q", m.name, m.file, m.from)
		}
	}
}

// The suite finds a wrong kernel: a fake driver with one change in its kernels. EXP_TEST_ALL=1 takes all
// mutants, else every eighth one.
func TestMutants(t *testing.T) {
	fake(t)
	t.Parallel()
	open(t)
	base := originals(t)
	for i, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if i%8 > 0 && os.Getenv("EXP_TEST_ALL") == "" {
				t.Skip("left out without EXP_TEST_ALL=1")
			}
			settings, check, ok := strings.Cut(m.check, ":") // of the fake driver
			if !ok {
				settings, check = "", m.check
			}
			class, _, _ := strings.Cut(check, "/")
			if !strings.HasPrefix(check, "Test") {
				check = "TestConformance/" + check
			}
			lib := t.TempDir()
			mutate(t, base, lib, m.file, m.from, m.to, foreign(t, class))
			cmd := exec.Command(os.Args[0], "-test.short", "-test.v", "-test.run=^"+strings.ReplaceAll(check, "/", "/^"))
			cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+lib, fakeVariable+"="+settings)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: "+check) {
				t.Errorf("the check %s passes: %v\n%s", m.check, err, out)
			}
		})
	}
}

// foreign returns the sources that have only kernels that the suite does not run in a class.
func foreign(t *testing.T, class string) (list []string) {
	for _, source := range sources(t) {
		home := ""
		switch name := strings.TrimSuffix(source, ".cu"); {
		case strings.HasPrefix(name, "matrix"), strings.HasPrefix(name, "wgmma"):
			home = "matrix"
		case name == "tileattention", name == "tileaheadattention":
			home = "bf16"
		case name == "attention", name == "aheadattention", name == "chainmatmul":
			home = "f32"
		}
		if _, ok := classes()[class]; ok && home != "" && home != class {
			list = append(list, source)
		}
	}
	return list
}

// objects is where `make fake` compiles the sources to, in the folder of all sources.
const objects = "build/fake/objects"

func isFolder(path string) bool {
	about, err := os.Stat(path)
	return err == nil && about.IsDir()
}

// originals returns a folder with a copy of the sources, and of what they are compiled to.
func originals(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	copied := func(from, to string) { // keeps the times
		if err := os.MkdirAll(to, 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("cp", "-a", from+"/.", to).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	copied(".", filepath.Join(dir, "kernels", "cuda"))
	if from := filepath.Join("..", "..", objects); isFolder(from) {
		copied(from, filepath.Join(dir, objects))
	}
	buildDriver(t, dir, filepath.Join(dir, "libcuda.so.1"), nil)
	return dir
}

// buildDriver builds a fake driver from the sources in dir, but not those that are left out again; what did not change
// is kept.
func buildDriver(t *testing.T, dir, driver string, left []string) {
	t.Helper()
	make := exec.Command("make", "-C", dir, "-f", "kernels/cuda/fake/Makefile", "OBJECTS="+objects, "OPTIMIZE=-Og",
		"DRIVER="+driver)
	for _, source := range left {
		make.Args = append(make.Args, "--old-file="+objects+"/"+source+".o")
	}
	if out, err := make.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// mutate builds a fake driver in lib from the sources in base where `to` replaces the first `from` in file.
func mutate(t *testing.T, base, lib, file, from, to string, left []string) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("cp", "-a", base+"/.", dir).CombinedOutput(); err != nil { // keeps the times
		t.Fatalf("%v\n%s", err, out)
	}
	changed := strings.Replace(read(t, file), from, to, 1)
	if err := os.WriteFile(filepath.Join(dir, "kernels", "cuda", file), []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	buildDriver(t, dir, filepath.Join(lib, "libcuda.so.1"), left)
}
