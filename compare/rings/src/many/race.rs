//! One trial with several producers and consumers: all threads start together, and all items are
//! checked.

use super::CAPACITY;
use super::arbiter::{self, Step};
use ringtap_ring::Kind;
use std::{
    hint::spin_loop,
    sync::{
        Arc, Barrier,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Release},
        },
    },
    thread,
    time::Instant,
};

/// The lowest bit of the producer's number in an item.
const PRODUCER_SHIFT: u32 = 48;

/// The result of polling a queue.
pub enum Polled {
    Item(u64),
    Nothing,
    /// The queue is empty, and all producers have finished.
    Over,
}

/// The queue's end in a producer's thread. It is dropped when all items are sent.
trait Put: Send {
    fn put(&mut self, item: u64) -> bool;
}

impl<F: FnMut(u64) -> bool + Send> Put for F {
    fn put(&mut self, item: u64) -> bool {
        self(item)
    }
}

pub struct Race {
    pub producers: usize,
    pub consumers: usize,
    /// Items of each producer.
    pub items: u64,
}

impl Race {
    /// Runs all threads and checks the items; returns the seconds from the first start to the last
    /// end.
    fn run<P: Put, C: FnMut() -> Polled + Send>(
        &self,
        producers: Vec<P>,
        consumers: Vec<C>,
        helper: Option<Box<dyn FnOnce() + Send + '_>>,
    ) -> Result<f64, String> {
        let start = Barrier::new(producers.len() + consumers.len());
        let (received, times) = thread::scope(|scope| {
            if let Some(helper) = helper {
                scope.spawn(helper);
            }
            let start = &start;
            let produce = |(index, producer)| {
                scope.spawn(move || {
                    start.wait();
                    let began = Instant::now();
                    self.produce(index as u64, producer);
                    began
                })
            };
            let consume = |consumer| {
                scope.spawn(move || {
                    start.wait();
                    let began = Instant::now();
                    (self.consume(consumer), began, Instant::now())
                })
            };
            let producers: Vec<_> = producers.into_iter().enumerate().map(produce).collect();
            let consumers: Vec<_> = consumers.into_iter().map(consume).collect();
            // Each thread records its own times, because it may get a CPU later than others.
            let mut times: Vec<Instant> = producers.into_iter().map(join).collect();
            let mut received = Ok((0, 0));
            for (one, began, ended) in consumers.into_iter().map(join) {
                times.extend([began, ended]);
                received = received
                    .and_then(|all: (u64, u64)| one.map(|one| (all.0 + one.0, all.1 + one.1)));
            }
            (received, times)
        });
        let (first, last) = (times.iter().min(), times.iter().max());
        let seconds = first.zip(last).map_or(0.0, |(first, last)| (*last - *first).as_secs_f64());
        let (count, sum) = received?;
        let producers = self.producers as u64;
        let expected = (producers * self.items, producers * (self.items * (self.items - 1) / 2));
        if (count, sum) == expected {
            Ok(seconds)
        } else {
            Err("items lost or duplicated".to_owned())
        }
    }

    fn produce(&self, index: u64, mut producer: impl Put) {
        let mut idle = 0;
        let mut number = 0;
        while number < self.items {
            let put = producer.put(index << PRODUCER_SHIFT | number);
            number += u64::from(put);
            wait_if(!put, &mut idle);
        }
    }

    /// The number of received items, and the sum of their numbers.
    fn consume(&self, mut poll: impl FnMut() -> Polled) -> Result<(u64, u64), String> {
        let mut next = vec![0; self.producers];
        let (mut count, mut sum, mut idle) = (0, 0, 0);
        loop {
            match poll() {
                Polled::Item(item) => {
                    let producer = (item >> PRODUCER_SHIFT) as usize;
                    let number = item & ((1 << PRODUCER_SHIFT) - 1);
                    if number < next[producer] {
                        return Err("items out of order".to_owned());
                    }
                    next[producer] = number + 1;
                    (count, sum, idle) = (count + 1, sum + number, 0);
                }
                Polled::Nothing => wait_if(true, &mut idle),
                Polled::Over => return Ok((count, sum)),
            }
        }
    }

    pub fn arbiter(&self) -> Result<f64, String> {
        let (producers, arbiter, consumers) = self.rings()?;
        self.run(
            producers.into_iter().map(put).collect(),
            consumers.into_iter().map(poll).collect(),
            Some(Box::new(|| arbiter.run())),
        )
    }

    /// A single consumer polls its ring and steps the arbiter when it is empty.
    pub fn stepped_by_consumer(&self) -> Result<f64, String> {
        let (producers, mut arbiter, consumers) = self.rings()?;
        let mut consumers = consumers.into_iter();
        let mut consumer = consumers.next().ok_or("a consumer")?;
        let mut over = false;
        let poll = move || {
            loop {
                match consumer.pop() {
                    Some(item) => return Polled::Item(item),
                    None if over => return Polled::Over,
                    None => match arbiter.step() {
                        Step::Moved(_) => {}
                        Step::Idle => return Polled::Nothing,
                        Step::Done => over = true,
                    },
                }
            }
        };
        self.run(producers.into_iter().map(put).collect(), vec![poll], None)
    }

    /// A single producer steps the arbiter after every 64 items, when its ring is full, and at the
    /// end.
    pub fn stepped_by_producer(&self) -> Result<f64, String> {
        struct Stepping {
            producer: Producer,
            arbiter: Option<arbiter::Arbiter<u64>>,
            pushed: usize,
        }

        impl Put for Stepping {
            fn put(&mut self, item: u64) -> bool {
                let put = self.producer.push(item).is_ok();
                self.pushed += usize::from(put);
                if !put || self.pushed.is_multiple_of(arbiter::TURN) {
                    self.producer.flush();
                    let _ = self.arbiter.as_mut().map(arbiter::Arbiter::step);
                }
                put
            }
        }

        impl Drop for Stepping {
            fn drop(&mut self) {
                self.producer.close();
                if let Some(arbiter) = self.arbiter.take() {
                    arbiter.run();
                }
            }
        }

        let (producers, arbiter, consumers) = self.rings()?;
        let producer = producers.into_iter().next().ok_or("a producer")?;
        let stepping = Stepping { producer, arbiter: Some(arbiter), pushed: 0 };
        self.run(vec![stepping], consumers.into_iter().map(poll).collect(), None)
    }

    fn rings(&self) -> Result<arbiter::Queue<u64>, String> {
        let Self { producers, consumers, .. } = *self;
        arbiter::mpmc(Kind::default(), producers, consumers, CAPACITY, 1)
            .map_err(|why| why.to_string())
    }

    /// The queue cannot be closed, so a flag is set when all producers have finished.
    pub fn array_queue(&self) -> Result<f64, String> {
        let queue = crossbeam_queue::ArrayQueue::new(CAPACITY);
        // Each producer holds a reference; dropping the last one sets the flag.
        struct SetOnDrop<'a>(&'a AtomicBool);
        impl Drop for SetOnDrop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Release);
            }
        }
        let over = AtomicBool::new(false);
        let finished = Arc::new(SetOnDrop(&over));
        let put = |_| {
            let (queue, finished) = (&queue, Arc::clone(&finished));
            move |item| {
                let _held = &finished;
                queue.push(item).is_ok()
            }
        };
        let poll = |_| {
            || {
                let over = over.load(Acquire);
                match queue.pop() {
                    Some(item) => Polled::Item(item),
                    None if over => Polled::Over,
                    None => Polled::Nothing,
                }
            }
        };
        let producers = (0..self.producers).map(put).collect();
        drop(finished);
        self.run(producers, (0..self.consumers).map(poll).collect(), None)
    }

    pub fn channel<S: Clone + Send, R: Clone + Send>(
        &self,
        sender: S,
        receiver: R,
        send: impl Fn(&S, u64) -> bool + Send + Sync,
        receive: impl Fn(&R) -> Polled + Send + Sync,
    ) -> Result<f64, String> {
        let (send, receive) = (&send, &receive);
        let put = |sender: S| move |item| send(&sender, item);
        let poll = |receiver: R| move || receive(&receiver);
        let senders = vec![sender; self.producers];
        let receivers = vec![receiver; self.consumers];
        self.run(
            senders.into_iter().map(put).collect(),
            receivers.into_iter().map(poll).collect(),
            None,
        )
    }
}

fn put(mut producer: Producer) -> impl Put {
    move |item| producer.push(item).is_ok()
}

fn poll(mut consumer: Consumer) -> impl FnMut() -> Polled + Send {
    move || {
        let closed = consumer.is_closed();
        match consumer.pop() {
            Some(item) => Polled::Item(item),
            None if closed => Polled::Over,
            None => Polled::Nothing,
        }
    }
}

type Producer = ringtap_ring::Producer<u64>;
type Consumer = ringtap_ring::Consumer<u64>;

fn join<T>(thread: thread::ScopedJoinHandle<T>) -> T {
    thread.join().expect("no panic")
}

/// Spins 64 times, then yields: there may be more threads than CPUs.
fn wait_if(nothing: bool, idle: &mut u32) {
    if !nothing {
        *idle = 0;
    } else if *idle < 64 {
        *idle += 1;
        spin_loop();
    } else {
        thread::yield_now();
    }
}
