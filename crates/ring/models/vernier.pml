/* Vernier as src/flavors/vernier.rs has it, for spin: theorems 1 and 2 of the paper, and that no item is stalled for
 * ever, although nobody flushes and nothing follows it. check.sh runs it; how it is made, mcring.pml tells.
 *
 *    producer ── tail, run end, takenSeen, published     consumer ── head, run end, seen, given, patience
 *        │ writes slots; publishes `fine`, `coarse`           │ reads slots; publishes `taken`
 *        └──────────────▶ slots, fine, coarse, closed ────────┘
 *
 * Counts are those of a machine whose words have WORD = 4 × CAP values, so they wrap all the time, and an index that
 * is left behind for half a word looks newer than it is. What is only tuning is left open, so the model covers every
 * choice: how long a run is, where a look at `taken` or a publication comes before it must.
 *
 *   CAP             capacity
 *   PATIENCE        empty polls between two looks at the fine index, at most
 *   BUG             1: publishes before it writes   2: takes the ring for larger by a slot
 *                   3: the consumer never looks at the fine index   4: gives slots back before it reads them
 *                   5: bursts leave the fine index behind
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

/* takenSeen ≤ taken ≤ head ≤ seen ≤ tail ≤ takenSeen + CAP. Not where a mistake is planted: there the theorems
 * themselves shall be seen to break. */
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

/* The producer's and the consumer's own, global so that CHAIN sees them. */
byte tail, takenSeen, published;
byte head, seen, given;

/* Which item is watched by `delivered`; nothing in the ring depends on it. */
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

/* After a burst, and when told to. */
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
		/* A run goes on behind the burst, if the burst ends within it. */
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
	/* It says nothing more, and does not say so. */
	:: true -> break
	od
}

inline give_back() {
	if
	:: given != head -> d_step { given = head; taken = head; CHAIN }
	:: else
	fi
}

/* Looks for items behind the head, of which none is known. */
inline look() {
	d_step { index = coarse; newer = NEWER(index) };
	if
	:: newer -> d_step { seen = index; polls = 0; CHAIN }
#if BUG != 3
	:: !newer && polls < patience -> polls++
	:: !newer && polls >= patience ->
		d_step {
			polls = 0;
			index = fine;
			newer = NEWER(index)
		};
		if
		:: newer -> d_step { seen = index; patience = MIN(2 * patience + 1, PATIENCE); CHAIN }
		:: !newer -> patience = patience / 2
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

/* peek and release of some items of the run; pop takes one and gives nothing back. */
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
	byte polls, patience;
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
		:: true -> give_back(); polls = patience
		:: true
		fi
	od
}
