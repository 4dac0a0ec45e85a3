/* Model of vernier (src/flavors/vernier.rs) for the model checker spin: theorems 1 and 2 of the paper, and that no item
 * is stalled for ever without a flush and without a later item. check.sh runs it; mcring.pml describes the method.
 *
 *    producer ── tail, run end, takenSeen, published     consumer ── head, run end, seen, given, poll_limit
 *        │ writes slots; publishes `fine`, `coarse`           │ reads slots; publishes `taken`
 *        └──────────────▶ slots, fine, coarse, closed ────────┘
 *
 * Index words have WORD = 4 × CAP values, so they wrap often, and an index that falls behind by half a word looks newer
 * than it is. Tuning parameters are left open (the length of a run, early reads of `taken`, early publications), so the
 * model covers every choice.
 *
 *   CAP             capacity
 *   POLL_LIMIT      most empty polls between two reads of the fine index
 *   BUG             1: publishes before it writes   2: uses a capacity that is one slot too large
 *                   3: the consumer never reads the fine index   4: frees slots before it reads them
 *                   5: bursts do not move the fine index
 */

#ifndef BUG
#define BUG 0
#endif
#if BUG == 2
#define ROOM (CAP + 1)
#else
#define ROOM CAP
#endif

#define WORD            (4 * CAP)
#define LOT             ((CAP + 3) / 4)
#define FORWARD(c, n)   (((c) + (n)) % WORD)
#define BEHIND(a, b)    (((b) + WORD - (a)) % WORD)
#define NEWER(index)    (BEHIND(seen, index) > 0 && BEHIND(seen, index) < WORD / 2)
#define VACANT_SLOTS    (ROOM - BEHIND(takenSeen, tail))
#define STRAIGHT(c)     (CAP - (c) % CAP)
#define MIN(a, b)       ((a) < (b) -> (a) : (b))

/* takenSeen ≤ taken ≤ head ≤ seen ≤ tail ≤ takenSeen + CAP. Not with a planted fault: then a
 * check of the theorems must fail. */
#if BUG
#define CHAIN
#else
#define CHAIN \
	assert(BEHIND(takenSeen, taken) + BEHIND(taken, head) + BEHIND(head, seen) + BEHIND(seen, tail) <= CAP)
#endif

mtype = { VACANT, BEING_WRITTEN, ITEM, BEING_READ };

/* Shared. */
byte fine, coarse, taken;
bit closed;
mtype slot[CAP] = VACANT;
byte item[CAP];

/* State of the producer and the consumer; global because CHAIN reads it. */
byte tail, takenSeen, published;
byte head, seen, given;

/* The item that `delivered` watches; nothing in the ring depends on it. */
bit put, got;
bit marked[CAP];
ltl delivered { [] (put -> <> got) }

/* Fills the next slot. */
inline write_item() {
	d_step {
		at = tail % CAP;
		assert(slot[at] == VACANT);
		slot[at] = BEING_WRITTEN
	};
#ifdef LIVE
	if
	:: !put -> d_step { put = 1; marked[at] = 1; slot[at] = ITEM; tail = FORWARD(tail, 1); at = 0; CHAIN }
	:: d_step { slot[at] = ITEM; tail = FORWARD(tail, 1); at = 0; CHAIN }
	fi
#else
	d_step {
		item[at] = number;
		number = FORWARD(number, 1);
		slot[at] = ITEM;
		tail = FORWARD(tail, 1);
		at = 0;
		CHAIN
	}
#endif
}

inline publish_coarse() {
#if BUG != 5
	/* The fine index follows once a quarter of all counts. */
	if
	:: tail / CAP != published / CAP -> fine = tail
	:: else
	fi;
#endif
	d_step { published = tail; coarse = tail; CHAIN }
}

/* After a burst, and on flush. */
inline publish() {
	if
	:: published != tail -> publish_coarse()
	:: else
	fi
}

inline look_at_taken() {
	d_step { takenSeen = taken; CHAIN }
}

/* push: through a run of slots known to be vacant. */
inline push() {
	if
	:: tail == runEnd ->
		if
		:: VACANT_SLOTS < CAP / 4 + 1 -> look_at_taken()
		:: else
		fi;
		if
		:: BEHIND(published, tail) >= LOT || (VACANT_SLOTS == 0 && published != tail) -> publish_coarse()
		:: else
		fi;
		if
		:: VACANT_SLOTS > 0 ->
			select(n : 1 .. MIN(VACANT_SLOTS, STRAIGHT(tail)));
			atomic { runEnd = FORWARD(tail, n); n = 0 }
		:: else
		fi
	:: else
	fi;
	if
	:: tail != runEnd ->
#if BUG == 1
		fine = FORWARD(tail, 1);
#endif
		write_item();
		fine = tail
	:: else
	fi
}

/* push_burst and fill of `wanted` items. */
inline push_burst() {
	select(wanted : 1 .. CAP);
	if
	:: VACANT_SLOTS < wanted -> look_at_taken()
	:: else
	fi;
	d_step { n = MIN(VACANT_SLOTS, wanted); wanted = 0 };
	do
	:: n > 0 ->
		/* If the burst ends within a run, the run continues behind it. */
		if
		:: tail == runEnd -> runEnd = FORWARD(runEnd, 1)
		:: else
		fi;
		write_item();
		n--
	:: else -> break
	od;
	publish()
}

active proctype producer() {
	byte wanted, n, at;
	byte runEnd;
	byte number;
	do
	:: true -> push()
	:: true -> push_burst()
	:: true -> publish()
	:: true -> publish(); closed = 1; break
	/* The producer stops without closing the ring. */
	:: true -> break
	od
}

inline give_back() {
	if
	:: given != head -> d_step { given = head; taken = head; CHAIN }
	:: else
	fi
}

/* Searches for items behind the head when none is known. */
inline look() {
	d_step { index = coarse; newer = NEWER(index) };
	if
	:: newer -> d_step { seen = index; polls = 0; CHAIN }
#if BUG != 3
	:: !newer && polls < poll_limit -> polls++
	:: !newer && polls >= poll_limit ->
		d_step {
			polls = 0;
			index = fine;
			newer = NEWER(index)
		};
		if
		:: newer -> d_step { seen = index; poll_limit = MIN(2 * poll_limit + 1, POLL_LIMIT); CHAIN }
		:: !newer -> poll_limit = poll_limit / 2
		fi
#else
	:: else
#endif
	fi;
	d_step { index = 0; newer = 0 }
}

/* The next run of slots known to hold items. */
inline next_run() {
	give_back();
	if
	:: seen == head -> look()
	:: else
	fi;
	if
	:: seen != head ->
		select(n : 1 .. MIN(BEHIND(head, seen), STRAIGHT(head)));
		atomic { runEnd = FORWARD(head, n); n = 0 }
	:: else
	fi
}

/* peek and release of some items of the run; pop takes one and frees no slot. */
inline take() {
	select(n : 1 .. BEHIND(head, runEnd));
#if BUG == 4
	taken = FORWARD(head, n);
#endif
	do
	:: n > 0 ->
		d_step {
			at = head % CAP;
			assert(slot[at] == ITEM);
			slot[at] = BEING_READ
		};
		d_step {
#ifdef LIVE
			got = got || marked[at];
			marked[at] = 0;
#else
			assert(item[at] == expected);
			expected = FORWARD(expected, 1);
			item[at] = 0;
#endif
			assert(slot[at] == BEING_READ);
			slot[at] = VACANT;
			head = FORWARD(head, 1);
			at = 0;
			n--;
			CHAIN
		}
	:: else -> break
	od;
	if
	:: give_back()
	:: true
	fi
}

active proctype consumer() {
	byte n, at, index;
	byte runEnd;
	byte polls, poll_limit;
	byte expected;
	bit newer, end;
	do
	:: end = closed;
		if
		:: head == runEnd -> next_run()
		:: else
		fi;
		if
		:: head != runEnd -> take()
		:: head == runEnd && end -> assert(head == tail); break
		:: else
		fi;
		if
		:: true -> give_back(); polls = poll_limit
		:: true
		fi
	od
}
