//! How long to wait before the next start, pure but for the jitter it is given.

use std::time::Duration;

use crate::ports::Jitter;

const STEP: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(30);

/// Returns the wait after the `deaths`-th death within the window: none after
/// the first, then a random one up to 100 ms × 2ⁿ and at most 30 s.
///
/// Full jitter, since many slots may have died of the same cause at once.
#[must_use]
pub fn backoff(deaths: usize, jitter: &dyn Jitter) -> Duration {
    let Some(exponent) = deaths.checked_sub(1).filter(|n| *n > 0) else {
        return Duration::ZERO;
    };
    let factor =
        u32::try_from(exponent).ok().and_then(|n| 1_u32.checked_shl(n)).unwrap_or(u32::MAX);
    jitter.up_to(STEP.saturating_mul(factor).min(MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Longest;

    impl Jitter for Longest {
        fn up_to(&self, most: Duration) -> Duration {
            most
        }
    }

    #[test]
    fn the_bound_doubles_and_ends_at_thirty_seconds() {
        let bounds: Vec<_> = [0, 1, 2, 3, 4, 9, 10, 40, 90]
            .iter()
            .map(|n| backoff(*n, &Longest).as_millis())
            .collect();
        assert_eq!(bounds, [0, 0, 200, 400, 800, 25_600, 30_000, 30_000, 30_000]);
    }
}
