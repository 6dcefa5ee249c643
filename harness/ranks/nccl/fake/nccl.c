// nccl.c is a libnccl.so.2 for tests: it moves memory of the fake driver (kernels/cuda/fake)
// between processes of this machine, through sockets. `make fake` builds it. The variable
// FAKENCCL changes it; several settings are separated by commas:
//
//	version=N    what ncclGetVersion says, 22304 if not set
//	join=CODE    what ncclCommInitRankConfig returns
//	fail=N:CODE  the N-th group of messages of a communicator fails with CODE
//
// It checks what NCCL takes for granted: that messages are device memory, in groups, on
// communicators that do not block, and as long as the receiver expects.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { SUCCESS, CUDA_FAILED, SYSTEM_FAILED, INTERNAL, INVALID_ARGUMENT, INVALID_USAGE, REMOTE, IN_PROGRESS };
enum { TOKEN = 16, UINT8 = 1 };

struct id {
	char bytes[128];
};

struct config {
	size_t size;
	unsigned magic, version;
	int blocking;
};

struct message {
	int send, peer;
	char *device, *bytes; // bytes begin with their number
	size_t n, done;       // with the number
};

struct comm {
	int rank, size, listener, state, joined, groups;
	int *socket; // of each peer, -1 if not connected
	char name[64], text[128];
	struct message *list;
	int messages;
	void *stream;
};

static struct {
	int version, join, fail_at, fail_code;
	int (*down)(void *, unsigned long long, size_t, void *), (*up)(unsigned long long, const void *, size_t, void *);
	int (*sync)(void *);
} fake = {.version = 22304};
static pthread_once_t configured = PTHREAD_ONCE_INIT, found = PTHREAD_ONCE_INIT;
static __thread struct {
	int depth, messages;
	struct message *list;
	struct comm *target;
	void *stream;
} group; // the group under way

static void configure(void) {
	const char *env = getenv("FAKENCCL");
	char *all = strdup(env ? env : ""), *rest = all;
	for (char *word; (word = strsep(&rest, ","));) {
		if (!*word || sscanf(word, "version=%d", &fake.version) == 1 || sscanf(word, "join=%d", &fake.join) == 1 ||
			sscanf(word, "fail=%d:%d", &fake.fail_at, &fake.fail_code) == 2)
			continue;
		fprintf(stderr, "FAKENCCL: unknown setting %s\n", word);
		abort();
	}
	free(all);
}

static void find_driver(void) {
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	if (!driver) return;
	fake.down = dlsym(driver, "cuMemcpyDtoHAsync_v2");
	fake.up = dlsym(driver, "cuMemcpyHtoDAsync_v2");
	fake.sync = dlsym(driver, "cuStreamSynchronize");
}

static int fails(struct comm *c, int code, const char *text) {
	snprintf(c->text, sizeof c->text, "%s", text);
	return c->state = code;
}

int ncclGetVersion(int *v) {
	pthread_once(&configured, configure);
	*v = fake.version;
	return SUCCESS;
}

const char *ncclGetErrorString(int code) {
	static const char *const text[] = {"no error", "unhandled cuda error", "unhandled system error", "internal error",
		"invalid argument", "invalid usage", "remote process exited or there was a network error", "in progress"};
	return code >= 0 && code <= IN_PROGRESS ? text[code] : "unknown result code";
}

const char *ncclGetLastError(struct comm *c) { return c ? c->text : ""; }

int ncclGetUniqueId(struct id *id) {
	memset(id, 0, sizeof *id);
	for (int i = 0; i < TOKEN; i++) {
		unsigned char x;
		if (getrandom(&x, 1, 0) != 1) return SYSTEM_FAILED;
		id->bytes[i] = 'a' + x % 26;
	}
	return SUCCESS;
}

// address sets a to the address of a rank's socket, which has no file.
static socklen_t address(struct sockaddr_un *a, const char *name, int rank) {
	memset(a, 0, sizeof *a);
	a->sun_family = AF_UNIX;
	return offsetof(struct sockaddr_un, sun_path) + 1 + snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "%s-%d", name, rank);
}

int ncclCommInitRankConfig(struct comm **out, int size, struct id id, int rank, const struct config *config) {
	pthread_once(&found, find_driver);
	if (config->magic != 0xcafebeef || config->version < 21400 || config->size < sizeof *config || config->blocking)
		return INVALID_ARGUMENT;
	if (!fake.down || rank < 0 || rank >= size) return INVALID_USAGE;
	struct comm *c = calloc(1, sizeof *c);
	struct sockaddr_un at;
	c->rank = rank, c->size = size, c->socket = malloc(size * sizeof(int));
	memset(c->socket, -1, size * sizeof(int));
	snprintf(c->name, sizeof c->name, "fakenccl-%.*s", TOKEN, id.bytes);
	c->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	*out = c;
	c->state = IN_PROGRESS;
	if (fake.join) return fails(c, fake.join, "FAKENCCL says so");
	if (bind(c->listener, (struct sockaddr *)&at, address(&at, c->name, rank)) || listen(c->listener, size))
		return fails(c, INVALID_USAGE, "two ranks have one number");
	return IN_PROGRESS;
}

// meet connects to the ranks below and lets those above connect.
static void meet(struct comm *c) {
	struct sockaddr_un at;
	for (int r = 0; r < c->rank; r++) {
		if (c->socket[r] >= 0) continue;
		int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(s, (struct sockaddr *)&at, address(&at, c->name, r)) || write(s, &c->rank, sizeof c->rank) < 0)
			close(s); // it does not listen yet
		else
			c->socket[r] = s;
	}
	for (int s; (s = accept4(c->listener, 0, 0, SOCK_CLOEXEC)) >= 0;) {
		int r;
		if (read(s, &r, sizeof r) == sizeof r) c->socket[r] = s;
	}
	for (int r = 0; r < c->size; r++)
		if (r != c->rank && c->socket[r] < 0) {
			usleep(200);
			return;
		}
	for (int r = 0; r < c->size; r++)
		if (r != c->rank) fcntl(c->socket[r], F_SETFL, O_NONBLOCK);
	c->joined = 1;
	c->state = SUCCESS;
}

// finish hands over what has arrived.
static void finish(struct comm *c) {
	int failed = 0;
	for (int i = 0; i < c->messages; i++) {
		struct message *m = &c->list[i];
		if (!m->send)
			failed |= fake.up((unsigned long long)m->device, m->bytes + sizeof m->n, m->n - sizeof m->n, c->stream);
	}
	failed |= fake.sync(c->stream);
	for (int i = 0; i < c->messages; i++) free(c->list[i].bytes);
	free(c->list);
	c->list = 0, c->messages = 0;
	if (failed) fails(c, INVALID_ARGUMENT, "not device memory");
	if (c->state == IN_PROGRESS) c->state = SUCCESS;
}

// move sends and receives what the sockets take, each peer's messages in their order.
static void move(struct comm *c) {
	for (int moved = 1, left; moved;) {
		moved = left = 0;
		for (int i = 0; i < c->messages; i++) {
			struct message *m = &c->list[i];
			int blocked = 0;
			for (int k = 0; k < i; k++)
				blocked |= c->list[k].send == m->send && c->list[k].peer == m->peer && c->list[k].done < c->list[k].n;
			left |= m->done < m->n;
			if (blocked || m->done == m->n) continue;
			ssize_t n = m->send ? send(c->socket[m->peer], m->bytes + m->done, m->n - m->done, MSG_NOSIGNAL)
			                    : recv(c->socket[m->peer], m->bytes + m->done, m->n - m->done, 0);
			if (n > 0) m->done += n, moved = 1;
			else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
				fails(c, REMOTE, "a peer closed its connection");
				return;
			}
			if (m->done >= sizeof m->n && memcmp(m->bytes, &m->n, sizeof m->n)) {
				fails(c, INTERNAL, "a message has another length than its receiver expects");
				return;
			}
		}
		if (!left) {
			finish(c);
			return;
		}
	}
}

int ncclCommGetAsyncError(struct comm *c, int *state) {
	if (c->state == IN_PROGRESS) (c->joined ? move : meet)(c);
	*state = c->state;
	return SUCCESS;
}

int ncclGroupStart(void) {
	group.depth++;
	return SUCCESS;
}

static int post(int send, void *device, size_t n, int type, int peer, struct comm *c, void *stream) {
	if (!group.depth || type != UINT8 || peer < 0 || peer >= c->size || peer == c->rank || c->state != SUCCESS) return INVALID_USAGE;
	group.target = c;
	group.stream = stream;
	group.list = realloc(group.list, (group.messages + 1) * sizeof *group.list);
	struct message m = {.send = send, .peer = peer, .device = device, .n = n + sizeof n, .bytes = malloc(n + sizeof n)};
	size_t total = m.n;
	if (send) memcpy(m.bytes, &total, sizeof total);
	group.list[group.messages++] = m;
	return SUCCESS;
}

int ncclSend(const void *p, size_t n, int type, int peer, struct comm *c, void *s) { return post(1, (void *)p, n, type, peer, c, s); }
int ncclRecv(void *p, size_t n, int type, int peer, struct comm *c, void *s) { return post(0, p, n, type, peer, c, s); }

int ncclGroupEnd(void) {
	struct comm *c = group.target;
	if (--group.depth || !c) return SUCCESS;
	int failed = 0;
	c->list = group.list, c->messages = group.messages, c->stream = group.stream;
	memset(&group, 0, sizeof group);
	if (++c->groups == fake.fail_at) return fails(c, fake.fail_code, "FAKENCCL says so");
	for (int i = 0; i < c->messages; i++) {
		struct message *m = &c->list[i];
		if (m->send) failed |= fake.down(m->bytes + sizeof(size_t), (unsigned long long)m->device, m->n - sizeof(size_t), c->stream);
	}
	if (failed || fake.sync(c->stream)) return fails(c, INVALID_ARGUMENT, "not device memory");
	return c->state = IN_PROGRESS;
}

int ncclCommAbort(struct comm *c) {
	for (int r = 0; r < c->size; r++)
		if (c->socket[r] >= 0) close(c->socket[r]);
	close(c->listener);
	free(c->socket);
	free(c);
	return SUCCESS;
}

int ncclCommDestroy(struct comm *c) { return ncclCommAbort(c); }
