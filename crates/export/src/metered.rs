//! Statistics of the metering process, read whenever statistics are exported.

use std::fmt;
use std::sync::Arc;

/// Statistics of the metering process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metered {
    /// Packets seen.
    pub packets: u64,
    /// IP packets that are in no flow: dropped by the system, or for lack of resources.
    pub ignored_packets: u64,
    /// Their layer 3 octets, as far as they are known.
    pub ignored_octets: u64,
}

/// Reads the statistics; called by exporting threads every few minutes and at the end.
#[derive(Clone)]
pub struct Meter(Arc<dyn Fn() -> Metered + Send + Sync>);

impl Meter {
    /// Creates a meter from `read`, which must only read counters and not wait.
    ///
    /// ```
    /// use ringtap_export::{Meter, Metered};
    /// let meter = Meter::new(|| Metered { packets: 7, ..Metered::default() });
    /// assert_eq!(meter.read().packets, 7);
    /// ```
    pub fn new(read: impl Fn() -> Metered + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// The current statistics.
    pub fn read(&self) -> Metered {
        (self.0)()
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Meter").field(&self.read()).finish()
    }
}
