/* Model of MCRingBuffer (src/flavors/mcring.rs) for the model checker spin: theorems 1 and 2 of the paper (section II,
 * figures 5 and 7), and the paper's assumption that no item is stalled for ever. check.sh runs it.
 *
 *    producer ── localRead, nextWrite, wBatch        consumer ── localWrite, nextRead, rBatch
 *        │ writes slots, publishes `write`               │ reads slots, publishes `read`
 *        └────────────▶ slots, write, closed ────────────┘
 *
 * One step is one access to shared memory; operations on a process's own variables belong to the step before. Writing
 * and reading a slot take two steps each, so simultaneous access to one slot is found.
 *
 * Checked in every reachable state:
 *   theorem 1   slots go only VACANT → BEING_WRITTEN → ITEM → BEING_READ → VACANT, and the chain
 *               localRead ≤ read ≤ nextRead ≤ localWrite ≤ write ≤ nextWrite ≤ localRead + max holds
 *   theorem 2   the consumer reads the numbers in the order in which they were written, each once; a consumer that
 *               found the ring closed and then empty has read all of them
 *   no stall    `ltl delivered`: a marked item, any one, arrives if both sides continue (weak fairness)
 *
 * The length of the stream is unlimited: indices and numbers wrap around, so the states are finite. Numbers modulo
 * CAP + 1 are enough: the slots hold the last CAP numbers written, the expected number is among them until the first
 * error, and CAP consecutive numbers differ modulo CAP + 1.
 *
 * The memory is sequentially consistent, as in the paper. tests/loom.rs checks that release and acquire are enough.
 *
 *   CAP, BATCH      requested capacity and batch
 *   UNCLAMPED       the batch is not clamped to half of the capacity, rounded up
 *   KEEP            a side that finds the ring full or empty does not publish its index
 *   CONSTANT        the producer never flushes and never ends: the paper's constant arrivals
 *   PUBLISHED       UNCLAMPED, KEEP and CONSTANT, and single items: figure 5 of the paper, whose `max` is CAP + 1
 *   BUG             1: publishes before it writes   2: uses a capacity that is one slot too large
 *                   3: UNCLAMPED and KEEP           4: frees slots before it reads them
 */

#ifdef PUBLISHED
#define UNCLAMPED
#define KEEP
#define CONSTANT
#define BURST_MAX 1
#else
#define BURST_MAX CAP
#endif
#ifndef BUG
#define BUG 0
#endif
#if BUG == 3
#define UNCLAMPED
#define KEEP
#endif
#if !defined(UNCLAMPED) && BATCH > (CAP + 1) / 2
#define LOT ((CAP + 1) / 2)
#else
#define LOT BATCH
#endif
#if BUG == 2
#define ROOM (CAP + 1)
#else
#define ROOM CAP
#endif

#define SLOT(i)             ((i) >= CAP -> (i) - CAP : (i))
#define FORWARD(i, n)       ((i) + (n) >= 2 * CAP -> (i) + (n) - 2 * CAP : (i) + (n))
#define DISTANCE(from, to)  ((to) >= (from) -> (to) - (from) : (to) + 2 * CAP - (from))
#define NEXT_NUMBER(n)      ((n) == CAP -> 0 : (n) + 1)
/* Not with a planted fault: then a check of the theorems must fail. */
#if BUG
#define CHAIN
#else
#define CHAIN \
	assert(DISTANCE(localRead, read) + DISTANCE(read, nextRead) + DISTANCE(nextRead, localWrite) \
	       + DISTANCE(localWrite, write) + DISTANCE(write, nextWrite) <= CAP)
#endif

mtype = { VACANT, BEING_WRITTEN, ITEM, BEING_READ };

/* Shared. */
byte read, write;
bit closed;
mtype slot[CAP] = VACANT;
byte item[CAP];

/* State of the producer and the consumer; global because CHAIN reads it. */
byte localRead, nextWrite, wBatch;
byte localWrite, nextRead, rBatch;

/* The item that `delivered` watches; nothing in the ring depends on it. */
bit put, got;
bit marked[CAP];
ltl delivered { [] (put -> <> got) }

inline publish_write() {
	d_step { write = nextWrite; wBatch = 0; CHAIN }
}

inline publish_read() {
	d_step { read = nextRead; rBatch = 0; CHAIN }
}

inline flush() {
	if
	:: wBatch > 0 -> publish_write()
	:: else
	fi
}

/* push_burst of `wanted` items; push is a burst of one. */
inline push_burst() {
	if
	:: ROOM - DISTANCE(localRead, nextWrite) < wanted -> d_step { localRead = read; CHAIN }
	:: else
	fi;
	d_step {
		n = ROOM - DISTANCE(localRead, nextWrite);
		n = (n < wanted -> n : wanted);
		i = 0
	};
#if BUG == 1
	write = FORWARD(nextWrite, n);
#endif
	do
	:: i < n ->
		d_step {
			at = FORWARD(nextWrite, i);
			at = SLOT(at);
			assert(slot[at] == VACANT);
			slot[at] = BEING_WRITTEN
		};
#ifdef LIVE
		if
		:: !put -> d_step { put = 1; marked[at] = 1; slot[at] = ITEM }
		:: slot[at] = ITEM
		fi;
#else
		d_step { item[at] = number; number = NEXT_NUMBER(number); slot[at] = ITEM };
#endif
		i++
	:: else ->
		d_step { nextWrite = FORWARD(nextWrite, n); wBatch = wBatch + n; at = 0; i = 0; CHAIN };
		break
	od;
	if
#ifndef KEEP
	:: n < wanted -> flush()
	:: n == wanted && wBatch >= LOT -> publish_write()
#else
	:: wBatch >= LOT -> publish_write()
#endif
	:: else
	fi;
	n = 0; wanted = 0
}

active proctype producer() {
	byte wanted, n, i, at;
	byte number;
	do
	:: true -> select(wanted : 1 .. BURST_MAX); push_burst()
#ifndef CONSTANT
	:: true -> flush()
	:: true -> flush(); closed = 1; break
#endif
	od
}

/* peek and release of `n` items; pop is n = 1. */
inline take() {
#ifdef PUBLISHED
	n = 1;
#else
	select(n : 1 .. DISTANCE(nextRead, localWrite));
#endif
	i = 0;
#if BUG == 4
	read = FORWARD(nextRead, n);
#endif
	do
	:: i < n ->
		d_step {
			at = FORWARD(nextRead, i);
			at = SLOT(at);
			assert(slot[at] == ITEM);
			slot[at] = BEING_READ
		};
		d_step {
#ifdef LIVE
			got = got || marked[at];
			marked[at] = 0;
#else
			assert(item[at] == expected);
			expected = NEXT_NUMBER(expected);
			item[at] = 0;
#endif
			assert(slot[at] == BEING_READ);
			slot[at] = VACANT
		};
		i++
	:: else ->
		d_step { nextRead = FORWARD(nextRead, n); rBatch = rBatch + n; n = 0; at = 0; i = 0; CHAIN };
		break
	od;
	if
	:: rBatch >= LOT -> publish_read()
	:: else
	fi
}

active proctype consumer() {
	byte n, i, at;
	byte expected;
	bit end;
	do
	:: end = closed;
		if
		:: nextRead == localWrite -> d_step { localWrite = write; CHAIN }
		:: else
		fi;
		if
		:: nextRead != localWrite -> take()
		:: nextRead == localWrite && end -> assert(nextRead == nextWrite); break
#ifndef KEEP
		:: nextRead == localWrite && !end && rBatch > 0 -> publish_read()
#endif
		:: else
		fi
	od
}
