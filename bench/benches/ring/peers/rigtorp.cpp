// rigtorp's SPSCQueue of 48-byte elements, one at a time, as its example uses it.

#include <rigtorp/SPSCQueue.h>

#include <cstdint>
#include <new>

namespace {

struct alignas(8) Entry {
	unsigned char bytes[48];
};

using Queue = rigtorp::SPSCQueue<Entry>;

struct Functions {
	Queue *(*make)(uint32_t capacity);
	void (*free)(Queue *);
	uint32_t (*send)(Queue *, const Entry *, uint32_t count);
	uint32_t (*receive)(Queue *, Entry *, uint32_t count);
};

Queue *make(uint32_t capacity)
{
	return new (std::nothrow) Queue(capacity);
}

void free(Queue *queue)
{
	delete queue;
}

uint32_t send(Queue *queue, const Entry *entries, uint32_t count)
{
	uint32_t sent = 0;
	while (sent < count && queue->try_push(entries[sent]))
		sent++;
	return sent;
}

uint32_t receive(Queue *queue, Entry *entries, uint32_t count)
{
	uint32_t received = 0;
	for (; received < count; received++) {
		const Entry *front = queue->front();
		if (front == nullptr)
			break;
		entries[received] = *front;
		queue->pop();
	}
	return received;
}

} // namespace

extern "C" const Functions cq_bench_rigtorp;
const Functions cq_bench_rigtorp = {make, free, send, receive};
