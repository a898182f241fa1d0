//! Random numbers, from the system.

use std::time::Duration;

use hostler_actors::ports::Jitter;

/// Draws a number for an id. 48 bits keep it short to read and type; two alike
/// among a million have a chance of one in five hundred.
pub(crate) fn id() -> u64 {
    number() & 0xffff_ffff_ffff
}

fn number() -> u64 {
    // The system's source fails only where the kernel has none, and then a number
    // that differs over time and processes still keeps ids apart.
    getrandom::u64().unwrap_or_else(|_| {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        u64::from(now.subsec_nanos()) << 32 | u64::from(std::process::id())
    })
}

/// Jitter from the system's randomness.
#[derive(Debug)]
pub(crate) struct SystemJitter;

impl Jitter for SystemJitter {
    fn up_to(&self, most: Duration) -> Duration {
        let share = u32::try_from(number() >> 32).unwrap_or(u32::MAX);
        most.mul_f64(f64::from(share) / f64::from(u32::MAX))
    }
}
