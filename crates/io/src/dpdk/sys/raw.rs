//! The functions and structs of `shim.c`.

use std::ffi::{c_char, c_int};

/// An mbuf; only the shim reads its layout.
#[repr(C)]
pub(super) struct Mbuf {
    _opaque: [u8; 0],
}

/// A pool of mbufs.
#[repr(C)]
pub(super) struct Pool {
    _opaque: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Device {
    pub(super) queues_most: u16,
    pub(super) shares_out: u16,
    pub(super) send_queues_most: u16,
    /// Ends with 0.
    pub(super) driver: [u8; 42],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Counters {
    pub(super) missed: u64,
    pub(super) errors: u64,
    pub(super) no_buffer: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) data: *const u8,
    /// Bytes in the first piece, at `data`, and in all pieces.
    pub(super) piece_len: u32,
    pub(super) len: u32,
}

// The shim asserts the same sizes.
const _: () = assert!(size_of::<Device>() == 48);
const _: () = assert!(size_of::<Counters>() == 24);
const _: () = assert!(size_of::<Frame>() == 16);

unsafe extern "C" {
    pub(super) fn rt_log_begin();
    pub(super) fn rt_log() -> *const c_char;
    pub(super) fn rt_cpu() -> c_int;
    pub(super) fn rt_start(argc: c_int, argv: *mut *mut c_char) -> c_int;
    pub(super) fn rt_attach(device: *const c_char) -> c_int;
    pub(super) fn rt_find(name: *const c_char) -> c_int;
    pub(super) fn rt_describe(port: u16, device: *mut Device) -> c_int;
    pub(super) fn rt_pool(port: u16, queue: u16, mbufs: u32) -> *mut Pool;
    pub(super) fn rt_pool_free(pool: *mut Pool);
    pub(super) fn rt_errno() -> c_int;
    pub(super) fn rt_configure(port: u16, queues: u16) -> c_int;
    pub(super) fn rt_ring_len(port: u16, wanted: u16) -> c_int;
    pub(super) fn rt_receive_queue(port: u16, queue: u16, ring: u16, pool: *mut Pool) -> c_int;
    pub(super) fn rt_send_queue(port: u16, wanted: u16) -> c_int;
    pub(super) fn rt_go(port: u16, promiscuous: c_int) -> c_int;
    pub(super) fn rt_close(port: u16);
    pub(super) fn rt_receive(
        port: u16,
        queue: u16,
        mbufs: *mut *mut Mbuf,
        frames: *mut Frame,
        most: u16,
    ) -> u16;
    pub(super) fn rt_free(mbufs: *mut *mut Mbuf, count: u16);
    pub(super) fn rt_join(mbuf: *const Mbuf, to: *mut u8, room: u32) -> u32;
    pub(super) fn rt_send(port: u16, pool: *mut Pool, data: *const u8, len: u16) -> c_int;
    pub(super) fn rt_counters(port: u16, counters: *mut Counters) -> c_int;
    pub(super) fn rt_waiting(port: u16, queue: u16) -> c_int;
    pub(super) fn rt_link(port: u16) -> c_int;
    pub(super) fn rt_thread_enter() -> c_int;
    pub(super) fn rt_thread_leave();
}
