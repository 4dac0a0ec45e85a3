//! All memory is allocated at the start: frames cause no allocation. A separate program, because the allocator counts
//! those of the whole program.

use ringtap_base::{Allocator, allocations};
use ringtap_traffic::{Generator, Profile};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

#[test]
fn frames_cause_no_allocation() {
    for name in Profile::NAMES {
        let profile = Profile { packets: 200_000, ..Profile::named(name).unwrap() };
        let fresh = allocations();
        let mut generator = Generator::new(&profile, 14).unwrap();
        let before = allocations();
        assert!(before > fresh, "the counting allocator is at work");
        while generator.next().is_some() {}
        assert_eq!(allocations(), before, "{name}");
        assert_eq!(generator.truth().packets, 200_000);
    }
}
